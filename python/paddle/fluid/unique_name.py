"""Names of variables: fc_0.w_0, fc_0.tmp_1, …"""
import contextlib
from collections.abc import Iterator

from regattarec import _core

__all__ = ["generate", "guard", "switch"]

_generator = _core.NameGenerator()


def generator() -> _core.NameGenerator:
    return _generator


def generate(key: str) -> str:
    """The key with the number of its use: fc_0, then fc_1."""
    return _generator.generate(key)


def switch(new_generator: _core.NameGenerator | None = None) -> _core.NameGenerator:
    """Counts anew, or goes on with another generator; gives the one before."""
    global _generator
    before, _generator = _generator, _core.NameGenerator() if new_generator is None else new_generator
    return before


@contextlib.contextmanager
def guard(new_generator: str | _core.NameGenerator | None = None) -> Iterator[None]:
    """Counts anew inside; a string stands before every name."""
    made = _core.NameGenerator(new_generator) if isinstance(new_generator, str) else new_generator
    before = switch(made)
    try:
        yield
    finally:
        switch(before)
