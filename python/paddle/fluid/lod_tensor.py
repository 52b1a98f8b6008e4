"""Tensors with sequences, made of arrays and lengths."""
from collections.abc import Sequence
from typing import Any

import numpy

from paddle.fluid.core import LoDTensor

__all__ = ["create_lod_tensor"]


def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None) -> LoDTensor:
    """Rows of `data`, cut into sequences of these lengths. A list of lists is one of ids.

    >>> tensor = create_lod_tensor([[1, 2], [3]], [[2, 1]])
    >>> tensor.lod(), numpy.array(tensor).tolist()
    ([[0, 2, 3]], [[1], [2], [3]])
    """
    if isinstance(data, LoDTensor):
        array = numpy.array(data)
    elif isinstance(data, list):
        array = numpy.array([value for sequence in data for value in sequence], dtype="int64").reshape(-1, 1)
    else:
        array = numpy.asarray(data)
    made = LoDTensor(array)
    made.set_recursive_sequence_lengths(recursive_seq_lens)
    innermost = made.lod()[-1][-1] if recursive_seq_lens else len(array)
    if innermost != len(array):
        raise ValueError(f"create_lod_tensor: the lengths {list(recursive_seq_lens[-1])} make {innermost} rows, and data has {len(array)}")
    return made
