"""Data sets by the names of PaddlePaddle's API."""
from paddle._missing import refuse_missing
from paddle.dataset import uci_housing

__all__ = ["uci_housing"]

__getattr__ = refuse_missing(__name__, globals())
