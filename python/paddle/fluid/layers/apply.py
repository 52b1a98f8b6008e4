"""One operator with one output, as most layers are."""
from typing import Any

from paddle.fluid.framework import Variable, builder, native_of, view


def apply(layer: str, type: str, inputs: dict[str, Any], attributes: dict[str, Any], *, output: str = "Out", act: str | None = None,
          name: str | None = None) -> Variable:
    """`inputs`: slot to variable, or to a list of them. Attributes that are None are left out."""
    slots = {}
    for slot, value in inputs.items():
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        slots[slot] = [native_of(slot, each, layer) for each in values]
    given = {key: value for key, value in attributes.items() if value is not None}
    return view(builder(f"layers.{layer}").apply(type, slots, given, output, act or "", name or ""))
