"""Tables of embeddings that outgrow one machine.

`regattarec.torch` puts them under PyTorch models; this package itself needs no PyTorch. Every error is a
`regattarec.Error`.
"""
import sys

TYPE_CHECKING = False  # as typing has it, which takes a while to import

if sys.version_info < (3, 10):  # older ones cannot read the files below
    raise ImportError("regattarec needs Python 3.10 or newer, and this is %d.%d" % sys.version_info[:2])

from regattarec.errors import *  # noqa: E402, F403
from regattarec import errors as _errors  # noqa: E402

__all__ = [name for name, value in vars(_errors).items() if isinstance(value, type)] + ["__version__"]


if TYPE_CHECKING:
    __version__: str
else:  # a type checker would take every name for one
    def __getattr__(name):
        if name == "__version__":  # the library has it; importing the package alone does not load that
            from regattarec import _core
            return _core.__version__
        raise AttributeError("module 'regattarec' has no attribute '%s'" % name)
