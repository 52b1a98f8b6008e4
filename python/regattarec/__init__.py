"""Tables of embeddings that outgrow one machine.

`regattarec.torch` puts them under PyTorch models; this package itself needs no PyTorch. Every error is a
`regattarec.Error`.
"""
from regattarec.errors import *  # noqa: F403
from regattarec import errors as _errors

__version__ = "0.1.0"
__all__ = [name for name, value in vars(_errors).items() if isinstance(value, type)] + ["__version__"]
