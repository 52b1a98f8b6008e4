"""Losses, a value a sample."""
from paddle.fluid.framework import Variable, builder, native_of, view
from paddle.fluid.layers.apply import apply

__all__ = ["square_error_cost", "cross_entropy", "log_loss", "sigmoid_cross_entropy_with_logits"]


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """(input - label) squared."""
    return view(builder("layers.square_error_cost").square_error_cost(
        native_of("input", input, "square_error_cost"), native_of("label", label, "square_error_cost")))


def cross_entropy(input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100) -> Variable:
    """-log of the probability that `input` has for the label."""
    return view(builder("layers.cross_entropy").cross_entropy(
        native_of("input", input, "cross_entropy"), native_of("label", label, "cross_entropy"), bool(soft_label), ignore_index))


def log_loss(input: Variable, label: Variable, epsilon: float = 1e-4, name: str | None = None) -> Variable:
    """The log loss of probabilities."""
    return apply("log_loss", "log_loss", {"Predicted": input, "Labels": label}, {"epsilon": float(epsilon)}, output="Loss", name=name)


def sigmoid_cross_entropy_with_logits(x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None,
                                      normalize: bool = False) -> Variable:
    """The log loss of sigmoid(x)."""
    return apply("sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy_with_logits", {"X": x, "Label": label},
                 {"ignore_index": ignore_index, "normalize": bool(normalize)}, name=name)
