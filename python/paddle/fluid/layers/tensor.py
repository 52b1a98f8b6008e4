"""Making, joining and reshaping tensors."""
from collections.abc import Sequence
from typing import Any

from paddle.fluid.framework import Variable, builder, dtype_name, type_code, view
from paddle.fluid.layers.apply import apply

__all__ = ["concat", "cast", "sums", "sum", "reshape", "fill_constant"]


def concat(input: Sequence[Variable], axis: int = 0, name: str | None = None) -> Variable:
    """Tensors one behind the other along an extent."""
    return apply("concat", "concat", {"X": list(input)}, {"axis": axis}, name=name)


def cast(x: Variable, dtype: Any) -> Variable:
    """The values as another type."""
    return apply("cast", "cast", {"X": x}, {"out_dtype": type_code("cast", dtype), "in_dtype": type_code("cast", x.dtype)})


def sums(input: Sequence[Variable] | Variable, out: Variable | None = None) -> Variable:
    """The sum of tensors of one shape."""
    if out is not None:
        raise NotImplementedError("layers.sums: out= is not there yet; use the result")
    return apply("sums", "sum", {"X": input}, {})


def sum(x: Sequence[Variable] | Variable) -> Variable:
    """The sum of tensors of one shape."""
    return apply("sum", "sum", {"X": x}, {})


def reshape(x: Variable, shape: Sequence[int], act: str | None = None, name: str | None = None) -> Variable:
    """The same elements in another shape: 0 is the extent of x there, one -1 what is left."""
    return apply("reshape", "reshape2", {"X": x}, {"shape": list(shape)}, act=act, name=name)


def fill_constant(shape: Sequence[int], dtype: Any, value: float) -> Variable:
    """A tensor of one value."""
    code, layer = type_code("fill_constant", dtype), builder("layers.fill_constant")
    out = layer.variable("fill_constant.tmp", dtype_name(dtype))
    layer.append("fill_constant", {}, {"Out": [out]}, {"shape": list(shape), "dtype": code, "value": float(value)})
    made = view(out)
    made.stop_gradient = True
    return made
