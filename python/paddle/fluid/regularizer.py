"""Decay of weights, as a part of their gradients."""
from paddle._missing import refuse_missing

__all__ = ["L1Decay", "L2Decay", "L1DecayRegularizer", "L2DecayRegularizer"]


class Regularizer:
    """`description` is what C++ takes."""

    l1 = False

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        self.description = {"l1": self.l1, "coefficient": float(regularization_coeff)}


class L1DecayRegularizer(Regularizer):
    """Adds coefficient * sign(w) to the gradient."""

    l1 = True


class L2DecayRegularizer(Regularizer):
    """Adds coefficient * w to the gradient."""


L1Decay, L2Decay = L1DecayRegularizer, L2DecayRegularizer

__getattr__ = refuse_missing(__name__, globals())
