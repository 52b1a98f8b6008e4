"""Variables that are fed."""
from collections.abc import Sequence
from typing import Any

from paddle.fluid.framework import Variable, builder, dtype_name, view

__all__ = ["data"]


def data(name: str, shape: Sequence[int], append_batch_size: bool = True, dtype: Any = "float32", lod_level: int = 0,
         type: Any = None, stop_gradient: bool = True) -> Variable:
    """A variable that is fed. The batch stands before `shape`, unless `append_batch_size` is False."""
    made = builder("layers.data").data(name, list(shape), dtype_name(dtype), lod_level=lod_level,
                                       append_batch_size=bool(append_batch_size), stop_gradient=bool(stop_gradient))
    return view(made)
