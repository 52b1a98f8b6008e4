"""What a user says of a layer's parameter."""
from typing import Any

from paddle.fluid.clip import GradientClip
from paddle.fluid.initializer import Initializer
from paddle.fluid.regularizer import Regularizer

__all__ = ["ParamAttr"]


class ParamAttr:
    """Name, first values, learning rate (a factor), decay and bound of a parameter. Parameters of one name are one."""

    def __init__(self, name: str | None = None, initializer: Initializer | None = None, learning_rate: float = 1.0,
                 regularizer: Regularizer | None = None, trainable: bool = True, gradient_clip: GradientClip | None = None,
                 do_model_average: bool = False) -> None:
        if do_model_average:
            raise NotImplementedError("ParamAttr: do_model_average needs ModelAverage, which is not there yet")
        self.name, self.initializer, self.learning_rate = name, initializer, learning_rate
        self.regularizer, self.trainable, self.gradient_clip = regularizer, trainable, gradient_clip


def described(argument: str, value: Any) -> Any:
    """A ParamAttr, a name, an initializer, None or False as C++ takes it."""
    if value is None or value is True:
        return None
    if value is False:
        return False
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Initializer):
        return {"initializer": value.description}
    if not isinstance(value, ParamAttr):
        raise TypeError(f"{argument}: a {type(value).__name__} is no fluid.ParamAttr")
    found: dict[str, Any] = {"trainable": bool(value.trainable), "learning_rate": float(value.learning_rate)}
    if value.name is not None:
        found["name"] = str(value.name)
    for key in ("initializer", "regularizer", "gradient_clip"):
        part = getattr(value, key)
        if part is not None:
            if not hasattr(part, "description"):
                raise TypeError(f"{argument}: its {key} is a {type(part).__name__}; see fluid.{key.replace('gradient_', '')}")
            found[key] = part.description
    return found
