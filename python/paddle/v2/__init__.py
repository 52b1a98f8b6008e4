"""PaddlePaddle's v2 names as far as Fluid's scripts use them: readers and data sets."""
from paddle import dataset, reader
from paddle._missing import refuse_missing
from paddle.batching import batch

__all__ = ["batch", "dataset", "reader"]

__getattr__ = refuse_missing(__name__, globals())
