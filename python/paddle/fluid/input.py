"""Data and embeddings as Fluid 1.6 and later have them: shapes are whole, with the batch in them."""
from collections.abc import Sequence
from typing import Any

from paddle.fluid.framework import Variable
from paddle.fluid.layers import io, nn

__all__ = ["data", "embedding"]


def data(name: str, shape: Sequence[int | None], dtype: Any = "float32", lod_level: int = 0) -> Variable:
    """A variable that is fed. An extent of None or -1 may be any."""
    return io.data(name, [-1 if extent is None else extent for extent in shape], append_batch_size=False, dtype=dtype,
                   lod_level=lod_level)


def embedding(input: Variable, size: Sequence[int], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: int | None = None, param_attr: Any = None, dtype: Any = "float32") -> Variable:
    """Row input[i] of a table of size [rows, width], for an input of any shape."""
    return nn.rows(True, input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)
