"""PaddlePaddle's names, made by Regatta: programs of the Fluid API run without a change.

    import paddle
    import paddle.fluid as fluid

This is not PaddlePaddle. docs/howto/fluid.md of Regatta lists what there is; a name that is missing says so when it is
used, with the nearest one that exists.
"""
import importlib
import types

from paddle import dataset, reader
from paddle._missing import refuse_missing
from paddle.batching import batch

__all__ = ["batch", "dataset", "fluid", "reader"]


def _load(name: str) -> types.ModuleType:
    return importlib.import_module(f"paddle.{name}")


__getattr__ = refuse_missing(__name__, globals(), lazy={"fluid": _load, "v2": _load})
