"""Places, scopes and tensors of the Fluid API."""
from collections.abc import Sequence
from typing import Any

import numpy

from regattarec.execution import exec_module

from paddle._missing import refuse_missing

__all__ = ["CPUPlace", "CUDAPlace", "Scope", "LoDTensor", "EOFException", "is_compiled_with_cuda"]


class CPUPlace:
    """Programs run on the CPU."""

    def __repr__(self) -> str:
        return "CPUPlace"


class CUDAPlace:
    """A GPU, which this version does not use."""

    def __init__(self, device_id: int = 0) -> None:
        raise NotImplementedError("CUDAPlace: this version runs on CPUs only; use fluid.CPUPlace()")


def is_compiled_with_cuda() -> bool:
    return False


class EOFException(Exception):
    """A reader of a program has no more data."""


class LoDTensor:
    """An array, and the LoD that cuts its rows into sequences. With `home` it is a variable's value in a scope."""

    def __init__(self, array: Any = None, lod: Sequence[Sequence[int]] = (), home: "tuple[Scope, str] | None" = None) -> None:
        self._array = None if array is None else numpy.asarray(array)
        self._lod = [list(map(int, level)) for level in lod]
        self._home = home

    def _read(self) -> "tuple[Any, list[list[int]]]":
        if self._home is None:
            return self._array, self._lod
        scope, name = self._home
        found = scope.native.get(name)
        return (None, []) if found is None else found

    def _write(self, array: Any, lod: list[list[int]]) -> None:
        if self._home is None:
            self._array, self._lod = array, lod
        elif array is not None:
            scope, name = self._home
            scope.native.set(name, numpy.ascontiguousarray(array), lod)

    def set(self, array: Any, place: Any = None) -> None:
        """Another value; the LoD stays."""
        self._write(numpy.array(array), self._read()[1])

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Offsets: [[0, 2, 5]] is a sequence of two rows, and one of three."""
        self._write(self._read()[0], [list(map(int, level)) for level in lod])

    def lod(self) -> list[list[int]]:
        return self._read()[1]

    def set_recursive_sequence_lengths(self, lengths: Sequence[Sequence[int]]) -> None:
        """The same as lengths: [[2, 3]]."""
        self.set_lod([[0, *numpy.cumsum(level).tolist()] for level in lengths])

    def recursive_sequence_lengths(self) -> list[list[int]]:
        return [numpy.diff(level).tolist() for level in self.lod()]

    def shape(self) -> list[int]:
        array = self._read()[0]
        return [] if array is None else list(array.shape)

    _get_dims = shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self._read()[0]
        if array is None:
            raise ValueError("the tensor has no value yet")
        return numpy.array(array, dtype=dtype)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        array, lod = self._read()
        return f"LoDTensor(shape={[] if array is None else list(array.shape)}, lod={lod})\n{array}"


class ScopeVariable:
    """A variable of a scope."""

    def __init__(self, scope: "Scope", name: str) -> None:
        self._tensor = LoDTensor(home=(scope, name))

    def get_tensor(self) -> LoDTensor:
        return self._tensor


class Scope:
    """Values by the names of variables."""

    def __init__(self) -> None:
        self.native = exec_module().Scope()

    def var(self, name: str) -> ScopeVariable:
        """The variable; it is made if there is none."""
        self.native.make(name)
        return ScopeVariable(self, name)

    def find_var(self, name: str) -> ScopeVariable | None:
        return ScopeVariable(self, name) if self.native.has(name) else None

    def local_var_names(self) -> list[str]:
        return list(self.native.names())


__getattr__ = refuse_missing(__name__, globals())
