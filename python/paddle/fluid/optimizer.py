"""Optimizers: each adds to a program what trains it."""
from collections.abc import Iterable
from typing import Any

from regattarec import _core

from paddle._missing import refuse_missing
from paddle.fluid.framework import Operator, Program, Variable, builder, native_of, program_guard, view

_Pairs = list[tuple[Variable, Variable]]


def _names(variables: Iterable[Any] | None) -> list[str]:
    return [each if isinstance(each, str) else each.name for each in variables or ()]


class Optimizer:
    """`minimize` appends the backward pass and the updates of the parameters."""

    _arguments: dict[str, Any] = {}  # keyword → default of the kind
    _type = ""

    def __init__(self, learning_rate: float | Variable, *positional: Any, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None, parameter_list: Iterable[Any] | None = None, **given: Any) -> None:
        keywords = list(self._arguments)
        if len(positional) > len(keywords):
            raise TypeError(f"optimizer.{self._type} takes at most {len(keywords) + 1} arguments by position")
        given = dict(zip(keywords, positional)) | given
        if unknown := set(given) - set(keywords):
            raise TypeError(f"optimizer.{self._type} has no argument {', '.join(sorted(unknown))}; it has learning_rate, "
                            f"{', '.join([*keywords, 'regularization', 'grad_clip', 'name'])}")
        if missing := [key for key in keywords if self._arguments[key] is ... and key not in given]:
            raise TypeError(f"optimizer.{self._type} needs {', '.join(missing)}")
        options = {"name": name or ""}
        for key, part in (("regularizer", regularization), ("gradient_clip", grad_clip)):
            if part is not None:
                options[key] = part.description
        rate = learning_rate.native if isinstance(learning_rate, Variable) else float(learning_rate)
        self._parameters = parameter_list
        self._native = _core.Optimizer(self._type, rate, given, **options)

    def minimize(self, loss: Variable, startup_program: Program | None = None, parameter_list: Iterable[Any] | None = None,
                 no_grad_set: Iterable[Any] | None = None) -> tuple[list[Operator], _Pairs]:
        """The operators that update parameters, and (parameter, gradient) pairs."""
        native = native_of("loss", loss, f"{self._type}.minimize")
        with program_guard(loss.block.program, startup_program):
            made = builder(f"optimizer.{self._type}.minimize")
            operators, pairs = self._native.minimize(made, native, _names(parameter_list or self._parameters), _names(no_grad_set))
            return [Operator(each) for each in operators], [(view(p), view(g)) for p, g in pairs]


def _kind(name: str, **arguments: Any) -> type[Optimizer]:
    return type(name, (Optimizer,), {"_type": name, "_arguments": arguments, "__module__": __name__})


SGD = _kind("SGD")
Momentum = _kind("Momentum", momentum=..., use_nesterov=False)
Adagrad = _kind("Adagrad", epsilon=1e-6, initial_accumulator_value=0.0)
Adam = _kind("Adam", beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_mode=False)
Adamax = _kind("Adamax", beta1=0.9, beta2=0.999, epsilon=1e-8)
DecayedAdagrad = _kind("DecayedAdagrad", decay=0.95, epsilon=1e-6)
Adadelta = _kind("Adadelta", epsilon=1e-6, rho=0.95)
RMSProp = _kind("RMSProp", rho=0.95, epsilon=1e-6, momentum=0.0, centered=False)
Ftrl = _kind("Ftrl", l1=0.0, l2=0.0, lr_power=-0.5)
SGDOptimizer, MomentumOptimizer, AdagradOptimizer, AdamOptimizer = SGD, Momentum, Adagrad, Adam
AdamaxOptimizer, DecayedAdagradOptimizer, AdadeltaOptimizer = Adamax, DecayedAdagrad, Adadelta
RMSPropOptimizer, FtrlOptimizer = RMSProp, Ftrl

__all__ = ["Optimizer", "SGD", "Momentum", "Adagrad", "Adam", "Adamax", "DecayedAdagrad", "Adadelta", "RMSProp", "Ftrl",
           "SGDOptimizer", "MomentumOptimizer", "AdagradOptimizer", "AdamOptimizer", "AdamaxOptimizer", "DecayedAdagradOptimizer",
           "AdadeltaOptimizer", "RMSPropOptimizer", "FtrlOptimizer"]

__getattr__ = refuse_missing(__name__, globals())
