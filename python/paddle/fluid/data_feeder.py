"""Samples of a reader as what a program is fed with."""
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from paddle.fluid.core import LoDTensor
from paddle.fluid.framework import Program, Variable, default_main_program

__all__ = ["DataFeeder"]


class DataFeeder:
    """feed(batch) gives a dict for Executor.run; a sample has a value of each variable of `feed_list`."""

    def __init__(self, feed_list: Sequence[Variable | str], place: Any = None, program: Program | None = None) -> None:
        block = (program or default_main_program()).global_block()
        self._variables = [block.var(each) if isinstance(each, str) else each for each in feed_list]

    def feed(self, iterable: Iterable[Any]) -> dict[str, Any]:
        rows = list(iterable)
        for number, row in enumerate(rows):
            if len(row) != len(self._variables):
                raise ValueError(f"DataFeeder: sample {number} has {len(row)} values, and feed_list {len(self._variables)} variables")
        return {variable.name: _column(variable, [row[i] for row in rows]) for i, variable in enumerate(self._variables)}


def _column(variable: Variable, values: list[Any]) -> Any:
    if variable.lod_level == 0:
        try:
            array = numpy.asarray(values, dtype=variable.dtype)
            return array.reshape([len(values), *variable.shape[1:]])
        except ValueError as error:
            raise ValueError(f"DataFeeder: values of '{variable.name}' do not make {len(values)} x {list(variable.shape[1:])}: "
                             f"{error}") from error
    offsets: list[list[int]] = [[0] for _ in range(variable.lod_level)]
    flat: list[Any] = []

    def add(value: Any, level: int) -> None:
        if level == variable.lod_level:
            flat.append(value)
            return
        for each in value:
            add(each, level + 1)
        offsets[level].append(len(flat) if level + 1 == variable.lod_level else len(offsets[level + 1]) - 1)

    for value in values:
        add(value, 0)
    array = numpy.asarray(flat, dtype=variable.dtype).reshape([len(flat), *variable.shape[1:]])
    return LoDTensor(array, offsets)
