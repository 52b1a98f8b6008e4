"""The backward pass of a program."""
from collections.abc import Iterable
from typing import Any

from paddle.fluid.framework import Variable, builder, native_of, program_guard, view

__all__ = ["append_backward"]


def append_backward(loss: Variable, parameter_list: Iterable[Any] | None = None,
                    no_grad_set: Iterable[Any] | None = None) -> list[tuple[Variable, Variable]]:
    """(parameter, gradient) pairs. The gradient of a variable x is x@GRAD."""
    def names(variables: Iterable[Any] | None) -> list[str]:
        return [each if isinstance(each, str) else each.name for each in variables or ()]

    native = native_of("loss", loss, "append_backward")
    with program_guard(loss.block.program):
        pairs = builder("append_backward").append_backward(native, names(parameter_list), names(no_grad_set))
        return [(view(parameter), view(gradient)) for parameter, gradient in pairs]
