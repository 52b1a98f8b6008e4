"""Optimizers of table rows, and their initial values. docs/rules.md has every formula.

A rule keeps its state beside the row, on the machine that has the row:

    >>> Adagrad(lr=0.1)
    Adagrad(lr=0.1, eps=1e-10)
"""
import dataclasses
from typing import ClassVar

__all__ = ["Rule", "SGD", "Momentum", "Adagrad", "SharedAdagrad", "StdAdagrad", "Adam", "SharedAdam", "RMSprop", "Ftrl",
           "Init", "Uniform", "Normal", "Constant"]


def _plain(value):
    """A number as JSON has it: of NumPy's there are others."""
    return value if isinstance(value, (bool, int)) else float(value)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A formula that turns a gradient into an update. Use one of its subclasses."""

    name: ClassVar[str] = ""
    fields: ClassVar[dict] = {}  # ours → the table's name, where they differ

    def config(self):
        """As table descriptions have it."""
        values = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}
        return {"name": self.name} | {self.fields.get(key, key): value for key, value in values.items()}


@dataclasses.dataclass(frozen=True)
class SGD(Rule):
    """w -= lr * g."""

    lr: float = 0.01
    name: ClassVar[str] = "sgd"
    fields: ClassVar[dict] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Momentum(Rule):
    """v = momentum * v + g; w -= lr * v (nesterov: lr * (g + momentum * v))."""

    lr: float = 0.01
    momentum: float = 0.9
    nesterov: bool = False
    name: ClassVar[str] = "momentum"
    fields: ClassVar[dict] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Adagrad(Rule):
    """torch.optim.Adagrad's: s += g * g; w -= lr * g / (sqrt(s) + eps)."""

    lr: float = 0.01
    eps: float = 1e-10
    name: ClassVar[str] = "adagrad_v2"
    fields: ClassVar[dict] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class SharedAdagrad(Rule):
    """One number of state for a row: w -= lr * g * sqrt(g0 / (g0 + s)); s += mean(g * g)."""

    lr: float = 0.05
    initial_g2sum: float = 3.0
    name: ClassVar[str] = "adagrad"
    fields: ClassVar[dict] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class StdAdagrad(Rule):
    """SharedAdagrad with a number for each element."""

    lr: float = 0.05
    initial_g2sum: float = 3.0
    name: ClassVar[str] = "std_adagrad"
    fields: ClassVar[dict] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Adam(Rule):
    """Adam of the rows that a step touches, with a step count for each row. eps comes after the bias correction."""

    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    name: ClassVar[str] = "adam"
    fields: ClassVar[dict] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class SharedAdam(Rule):
    """Adam with one m and v for a row: the means of g and g * g."""

    lr: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    name: ClassVar[str] = "shared_adam"
    fields: ClassVar[dict] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class RMSprop(Rule):
    """r = rho * r + (1 - rho) * g * g; w -= lr * g / sqrt(r + eps)."""

    lr: float = 0.01
    rho: float = 0.95
    eps: float = 1e-6
    momentum: float = 0.0
    centered: bool = False
    name: ClassVar[str] = "rmsprop"
    fields: ClassVar[dict] = {"lr": "learning_rate", "eps": "epsilon"}


@dataclasses.dataclass(frozen=True)
class Ftrl(Rule):
    """Ftrl-proximal: sparse weights by lambda1."""

    lr: float = 0.01
    alpha: float = 0.05
    beta: float = 1.0
    lambda1: float = 0.0
    lambda2: float = 0.0
    name: ClassVar[str] = "ftrl"
    fields: ClassVar[dict] = {"lr": "learning_rate"}


@dataclasses.dataclass(frozen=True)
class Init:
    """Initial values of a row: a function of seed, table and key, whichever worker meets the key first."""

    def config(self):
        raise TypeError("Init is none itself: use Uniform, Normal or Constant")


@dataclasses.dataclass(frozen=True)
class Uniform(Init):
    """Even between -bound and bound."""

    bound: float = 1e-4

    def config(self):
        return {"name": "uniform", "a": -float(self.bound), "b": float(self.bound)}


@dataclasses.dataclass(frozen=True)
class Normal(Init):
    """Normal around 0."""

    std: float = 0.01

    def config(self):
        return {"name": "normal", "a": 0.0, "b": float(self.std)}


@dataclasses.dataclass(frozen=True)
class Constant(Init):
    """One value."""

    value: float = 0.0

    def config(self):
        return {"name": "constant", "a": float(self.value), "b": 0.0}
