"""Operators of one input, and of two: activations, arithmetic, sums over extents."""
from collections.abc import Callable, Sequence
from typing import Any

from paddle.fluid.framework import Variable
from paddle.fluid.layers.apply import apply

_UNARY = ("relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "abs", "ceil", "floor", "round", "square", "reciprocal",
          "softplus", "softsign", "logsigmoid", "sin", "cos")
_ELEMENTWISE = ("add", "sub", "mul", "div", "max", "min", "pow")
_REDUCE = ("sum", "mean", "max", "min", "prod")


def _unary(name: str) -> Callable[..., Variable]:
    def layer(x: Variable, name: str | None = None) -> Variable:
        return apply(kind, kind, {"X": x}, {}, name=name)

    kind = name
    layer.__name__ = layer.__qualname__ = name
    layer.__doc__ = f"{name} of every element."
    return layer


def elementwise(kind: str, x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Variable:
    """The operator elementwise_<kind>."""
    return apply(f"elementwise_{kind}", f"elementwise_{kind}", {"X": x, "Y": y}, {"axis": axis}, act=act, name=name)


def _elementwise(name: str) -> Callable[..., Variable]:
    def layer(x: Variable, y: Variable, axis: int = -1, act: str | None = None, name: str | None = None) -> Variable:
        return elementwise(kind, x, y, axis, act, name)

    kind = name
    layer.__name__ = layer.__qualname__ = f"elementwise_{name}"
    layer.__doc__ = f"{name} of x and y, whose extents lie along those of x from `axis` on."
    return layer


def _reduce(name: str) -> Callable[..., Variable]:
    def layer(input: Variable, dim: int | Sequence[int] | None = None, keep_dim: bool = False, name: str | None = None) -> Variable:
        extents = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
        return apply(kind, kind, {"X": input}, {"dim": extents, "keep_dim": bool(keep_dim), "reduce_all": not extents}, name=name)

    kind = f"reduce_{name}"
    layer.__name__ = layer.__qualname__ = kind
    layer.__doc__ = f"The {name} over extents `dim`, or over all."
    return layer


def mean(x: Variable, name: str | None = None) -> Variable:
    """The mean of all elements, of shape [1]."""
    return apply("mean", "mean", {"X": x}, {}, name=name)


def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """Probabilities along an extent."""
    return apply("softmax", "softmax", {"X": input}, {"axis": axis}, name=name)


def scale(x: Variable, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None,
          name: str | None = None) -> Variable:
    """scale * x + bias, or scale * (x + bias)."""
    return apply("scale", "scale", {"X": x}, {"scale": float(scale), "bias": float(bias), "bias_after_scale": bool(bias_after_scale)},
                 act=act, name=name)


def pow(x: Variable, factor: float = 1.0, name: str | None = None) -> Variable:
    """x to the power of `factor`."""
    return apply("pow", "pow", {"X": x}, {"factor": float(factor)}, name=name)


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """Every element from min to max."""
    return apply("clip", "clip", {"X": x}, {"min": float(min), "max": float(max)}, name=name)


_made: dict[str, Any] = {name: _unary(name) for name in _UNARY}
_made |= {f"elementwise_{name}": _elementwise(name) for name in _ELEMENTWISE}
_made |= {f"reduce_{name}": _reduce(name) for name in _REDUCE}
globals().update(_made)

__all__ = [*_made, "mean", "softmax", "scale", "pow", "clip"]  # noqa: PLE0605
