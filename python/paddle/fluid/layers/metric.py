"""How good predictions are."""
from paddle.fluid.framework import Variable, builder, native_of, view

__all__ = ["accuracy", "auc"]


def accuracy(input: Variable, label: Variable, k: int = 1) -> Variable:
    """The share of samples whose label is among the k most probable classes."""
    return view(builder("layers.accuracy").accuracy(native_of("input", input, "accuracy"), native_of("label", label, "accuracy"), k))


def auc(input: Variable, label: Variable, curve: str = "ROC", num_thresholds: int = 4095, topk: int = 1,
        slide_steps: int = 1) -> tuple[Variable, Variable, list[Variable]]:
    """The area under the curve of all batches, that of the last ones, and the counts that both are made of."""
    if topk != 1:
        raise NotImplementedError("layers.auc: topk is 1; other numbers are not there yet")
    total, batch, states = builder("layers.auc").auc(native_of("input", input, "auc"), native_of("label", label, "auc"), curve,
                                                     num_thresholds, slide_steps)
    return view(total), view(batch), [view(state) for state in states]
