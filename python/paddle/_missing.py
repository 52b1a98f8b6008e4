"""What a module of this package says of a name that it lacks."""
import difflib
from collections.abc import Callable
from typing import Any


def refuse_missing(module: str, names: dict[str, Any], lazy: dict[str, Callable[[str], Any]] | None = None) -> Callable[[str], Any]:
    """A module's __getattr__. `lazy` names load when they are first asked for."""

    def missing(name: str) -> Any:
        if lazy and name in lazy:
            return lazy[name](name)
        text = f"module '{module}' has no attribute '{name}'"
        if not name.startswith("_"):
            known = sorted({key for key in names if not key.startswith("_")} | set(lazy or ()))
            near = difflib.get_close_matches(name, known, 3, 0.6)
            text += " in Regatta" + (f"; did you mean {', '.join(near)}?" if near else "") + ". docs/howto/fluid.md lists what there is"
        raise AttributeError(text)

    return missing
