"""Sequences: rows that a LoD groups."""
from paddle.fluid.framework import Variable, builder, native_of, view

__all__ = ["sequence_pool", "sequence_first_step", "sequence_last_step"]


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Variable:
    """One row of each sequence: its sum, average, sqrt, max, first or last."""
    return view(builder("layers.sequence_pool").sequence_pool(native_of("input", input, "sequence_pool"), pool_type.upper(),
                                                              bool(is_test), float(pad_value)))


def sequence_first_step(input: Variable) -> Variable:
    return sequence_pool(input, "first")


def sequence_last_step(input: Variable) -> Variable:
    return sequence_pool(input, "last")
