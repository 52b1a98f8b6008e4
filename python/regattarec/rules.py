"""Optimizers of table rows, and their initial values. docs/rules.md has every formula.

A rule keeps its state beside the row, on the machine that has the row:

    >>> Adagrad(lr=0.1)
    Adagrad(lr=0.1, eps=1e-10)
"""
import dataclasses
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from regattarec import arguments, errors

__all__ = ["Rule", "SGD", "Momentum", "Adagrad", "SharedAdagrad", "StdAdagrad", "Adam", "SharedAdam", "RMSprop", "Ftrl",
           "Init", "Uniform", "Normal", "Constant"]


_MOST = 3.4e38  # of 32 bits
_BOUNDS = {"beta1": (0.0, 0.9999999), "beta2": (0.0, 0.9999999), "momentum": (0.0, 1.0), "rho": (0.0, 1.0),
           "alpha": (sys.float_info.min, _MOST), "initial_g2sum": (sys.float_info.min, _MOST),
           "value": (-_MOST, _MOST), "bound": (0.0, 1e38)}


def _check(settings: Any) -> None:
    """Makes the fields Python's own numbers, or says which one cannot be."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        least, most = _BOUNDS.get(field.name, (0.0, _MOST))
        try:
            plain = (arguments.flag if isinstance(field.default, bool) else arguments.real)(field.name, value)
        except errors.InvalidArgumentError:
            plain = None
        if plain is None or not least <= plain <= most:
            wanted = f"a number from {least:g} to {most:.7g}"
            if isinstance(field.default, bool):
                wanted = "True or False"
            elif least == sys.float_info.min:
                wanted = "a number above 0"
            raise errors.InvalidArgumentError(
                f"{type(settings).__name__}: {field.name} is {arguments.shown(value)}; it has to be {wanted}")
        object.__setattr__(settings, field.name, plain)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A formula that turns a gradient into an update. Use one of its subclasses."""

    name: ClassVar[str] = ""
    fields: ClassVar[dict[str, str]] = {}  # ours → the table's name, where they differ
    if TYPE_CHECKING:
        @property
        def lr(self) -> float: ...  # of every rule

    def __post_init__(self) -> None:
        if not self.name:
            raise TypeError(f"{type(self).__name__} is no formula itself: use SGD, Adagrad, Adam or another one")
        _check(self)

    def config(self) -> dict[str, Any]:
        """As table descriptions have it."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"name": self.name} | {self.fields.get(key, key): value for key, value in values.items()}


@dataclasses.dataclass(frozen=True)
class SGD(Rule):
    """w -= lr * g."""

    lr: float = 0.01
    name: ClassVar[str] = "sgd"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Momentum(Rule):
    """v = momentum * v + g; w -= lr * v (nesterov: lr * (g + momentum * v))."""

    lr: float = 0.01
    momentum: float = 0.9
    nesterov: bool = False
    name: ClassVar[str] = "momentum"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Adagrad(Rule):
    """torch.optim.Adagrad's: s += g * g; w -= lr * g / (sqrt(s) + eps)."""

    lr: float = 0.01
    eps: float = 1e-10
    name: ClassVar[str] = "adagrad_v2"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class SharedAdagrad(Rule):
    """One number of state for a row: w -= lr * g * sqrt(g0 / (g0 + s)); s += mean(g * g)."""

    lr: float = 0.05
    initial_g2sum: float = 3.0
    name: ClassVar[str] = "adagrad"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class StdAdagrad(Rule):
    """SharedAdagrad with a number for each element."""

    lr: float = 0.05
    initial_g2sum: float = 3.0
    name: ClassVar[str] = "std_adagrad"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Adam(Rule):
    """Adam of the rows that a step touches, with a step count for each row. eps comes after the bias correction."""

    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    name: ClassVar[str] = "adam"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class SharedAdam(Rule):
    """Adam with one m and v for a row: the means of g and g * g."""

    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    name: ClassVar[str] = "shared_adam"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class RMSprop(Rule):
    """r = rho * r + (1 - rho) * g * g; w -= lr * g / sqrt(r + eps)."""

    lr: float = 0.01
    rho: float = 0.95
    eps: float = 1e-6
    momentum: float = 0.0
    centered: bool = False
    name: ClassVar[str] = "rmsprop"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class Ftrl(Rule):
    """Ftrl-proximal: sparse weights by lambda1."""

    lr: float = 0.01
    alpha: float = 0.05
    beta: float = 1.0
    lambda1: float = 0.0
    lambda2: float = 0.0
    name: ClassVar[str] = "ftrl"
    fields: ClassVar[dict[str, str]] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Init:
    """Initial values of a row: a function of seed, table and key, whichever worker meets the key first."""

    def __post_init__(self) -> None:
        if type(self) is Init:
            raise TypeError("Init is none itself: use Uniform, Normal or Constant")
        _check(self)

    def config(self) -> dict[str, Any]:
        """As table descriptions have it."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Uniform(Init):
    """Even between -bound and bound."""

    bound: float = 1e-4

    def config(self) -> dict[str, Any]:
        return {"name": "uniform", "a": -self.bound, "b": self.bound}


@dataclasses.dataclass(frozen=True)
class Normal(Init):
    """Normal around 0."""

    std: float = 0.01

    def config(self) -> dict[str, Any]:
        return {"name": "normal", "a": 0.0, "b": self.std}


@dataclasses.dataclass(frozen=True)
class Constant(Init):
    """One value."""

    value: float = 0.0

    def config(self) -> dict[str, Any]:
        return {"name": "constant", "a": self.value, "b": 0.0}
