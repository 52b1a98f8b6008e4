"""Bounds of gradients."""
from paddle._missing import refuse_missing

__all__ = ["GradientClipByValue", "GradientClipByNorm", "GradientClipByGlobalNorm"]


class GradientClip:
    """`description` is what C++ takes."""

    description: dict[str, object]


class GradientClipByValue(GradientClip):
    """Every element from `min` (by default -max) to `max`."""

    def __init__(self, max: float, min: float | None = None) -> None:
        self.description = {"kind": "value", "low": float(-max if min is None else min), "high": float(max)}


class GradientClipByNorm(GradientClip):
    """Scales a gradient whose norm is above `clip_norm` down to it."""

    def __init__(self, clip_norm: float) -> None:
        self.description = {"kind": "norm", "limit": float(clip_norm)}


class GradientClipByGlobalNorm(GradientClip):
    """The same with the norm of all gradients of a group together."""

    def __init__(self, clip_norm: float, group_name: str = "default_group") -> None:
        self.description = {"kind": "global_norm", "limit": float(clip_norm), "group": group_name}


__getattr__ = refuse_missing(__name__, globals())
