"""First values of parameters."""
from typing import Any

import numpy

from paddle._missing import refuse_missing

__all__ = ["Constant", "Uniform", "Normal", "TruncatedNormal", "Xavier", "MSRA", "NumpyArrayInitializer"]


class Initializer:
    """`description` is what C++ takes."""

    def __init__(self, kind: str, **values: Any) -> None:
        self.description = {"kind": kind} | values


class Constant(Initializer):
    def __init__(self, value: float = 0.0, force_cpu: bool = False) -> None:
        super().__init__("constant", a=float(value))


class Uniform(Initializer):
    def __init__(self, low: float = -1.0, high: float = 1.0, seed: int = 0) -> None:
        super().__init__("uniform", a=float(low), b=float(high), seed=seed)


class Normal(Initializer):
    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__("normal", a=float(loc), b=float(scale), seed=seed)


class TruncatedNormal(Initializer):
    """Normal within two deviations."""

    def __init__(self, loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> None:
        super().__init__("truncated_normal", a=float(loc), b=float(scale), seed=seed)


class Xavier(Initializer):
    def __init__(self, uniform: bool = True, fan_in: int | None = None, fan_out: int | None = None, seed: int = 0) -> None:
        super().__init__("xavier", uniform=uniform, fan_in=fan_in or 0, fan_out=fan_out or 0, seed=seed)


class MSRA(Initializer):
    def __init__(self, uniform: bool = True, fan_in: int | None = None, seed: int = 0) -> None:
        super().__init__("msra", uniform=uniform, fan_in=fan_in or 0, seed=seed)


class NumpyArrayInitializer(Initializer):
    """These very values."""

    def __init__(self, value: Any) -> None:
        array = numpy.asarray(value)
        kind = "floats" if array.dtype.kind == "f" else "integers"
        super().__init__("values", **{kind: array.reshape(-1).tolist()})


ConstantInitializer, UniformInitializer, NormalInitializer = Constant, Uniform, Normal
TruncatedNormalInitializer, XavierInitializer, MSRAInitializer = TruncatedNormal, Xavier, MSRA

__getattr__ = refuse_missing(__name__, globals())
