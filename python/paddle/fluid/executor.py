"""Runs programs."""
import contextlib
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy

from regattarec.execution import exec_module

from paddle.fluid.core import LoDTensor, Scope
from paddle.fluid.framework import Program, Variable, default_main_program

__all__ = ["Executor", "global_scope", "scope_guard"]

_scopes: list[Scope] = []


def global_scope() -> Scope:
    """Where the variables of programs are, unless a scope_guard or run(scope=) says another place."""
    if not _scopes:
        _scopes.append(Scope())
    return _scopes[-1]


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Programs that run inside have their variables in this scope."""
    if not isinstance(scope, Scope):
        raise TypeError(f"scope_guard takes a fluid.Scope, not {type(scope).__name__}")
    global_scope()
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()


def _name(fetch: Any) -> str:
    if isinstance(fetch, str):
        return fetch
    if isinstance(fetch, Variable):
        return fetch.name
    raise TypeError(f"fetch_list: a {type(fetch).__name__} is neither a variable nor its name")


class Executor:
    """Runs programs at a place. What was made ready for a program, its feeds and its fetches is kept for the next run."""

    def __init__(self, place: Any = None) -> None:
        self.place = place
        self._ready: weakref.WeakKeyDictionary[Program, dict[Any, Any]] = weakref.WeakKeyDictionary()

    def run(self, program: Program | None = None, feed: Mapping[str, Any] | None = None, fetch_list: Sequence[Any] | None = None,
            feed_var_name: str = "feed", fetch_var_name: str = "fetch", scope: Scope | None = None, return_numpy: bool = True,
            use_program_cache: bool = True) -> list[Any]:
        """The values of `fetch_list`, after a run with the values of `feed`: arrays, or LoDTensors with return_numpy=False."""
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise TypeError(f"run: program is a fluid.Program, not {type(program).__name__}")
        if feed is not None and not isinstance(feed, Mapping):
            raise TypeError(f"run: feed is a dict of names and values, not {type(feed).__name__}")
        feed = feed or {}
        fetches = fetch_list if isinstance(fetch_list, (list, tuple)) else [] if fetch_list is None else [fetch_list]
        step = self._step(program, tuple(feed), tuple(map(_name, fetches)))
        found = step.run((scope or global_scope()).native, [_value(program, name, value) for name, value in feed.items()])
        if return_numpy:
            return [None if each is None else each[0] for each in found]
        return [None if each is None else LoDTensor(*each) for each in found]

    def _step(self, program: Program, feeds: tuple[str, ...], fetches: tuple[str, ...]) -> Any:
        ready = self._ready.setdefault(program, {})
        version, step = ready.get((feeds, fetches), (None, None))
        if version != program.version:
            step = exec_module().Step(program.native.to_bytes(), list(feeds), list(fetches))
            ready[feeds, fetches] = program.version, step
        return step

    def close(self) -> None:
        """Nothing more is run."""
        self._ready.clear()


def _value(program: Program, name: str, value: Any) -> tuple[Any, list[list[int]]]:
    """(array, LoD) as C++ takes them. Python's own numbers become the variable's type."""
    lod: list[list[int]] = value.lod() if isinstance(value, LoDTensor) else []
    if isinstance(value, (list, tuple, int, float)):
        declared = program.global_block().native.find(name)
        value = numpy.asarray(value, dtype=None if declared is None else declared.dtype)
    array = numpy.asarray(value)
    if array.dtype == object:
        raise ValueError(f"feed '{name}': the values are no array of numbers; rows of different lengths need a LoDTensor")
    return (array if array.flags.c_contiguous else numpy.ascontiguousarray(array)), lod
