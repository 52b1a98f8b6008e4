"""Programs and their variables, and which program layers go to.

Blocks, operators and variables are views of a program in C++ (regattarec._core), where everything is checked.
"""
import contextlib
import numbers
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from regattarec import _core

from paddle.fluid import unique_name

__all__ = ["Program", "Variable", "Operator", "Block", "default_main_program", "default_startup_program", "program_guard",
           "name_scope", "in_dygraph_mode"]

_PACKAGE = str(pathlib.Path(__file__).absolute().parents[1])


def call_site() -> tuple[str, int]:
    """File and line of the user's program: the innermost call from outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


class Variable:
    """A name of a program for a value. `shape` has -1 where only a run knows the extent."""

    def __init__(self, block: "Block", native: _core.Variable) -> None:
        self.block, self.native = block, native

    @property
    def name(self) -> str:
        return self.native.name

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.native.shape)

    @property
    def dtype(self) -> str:
        return self.native.dtype

    @property
    def lod_level(self) -> int:
        return self.native.lod_level

    @property
    def is_data(self) -> bool:
        return self.native.is_data

    @property
    def persistable(self) -> bool:
        return self.native.persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.native.persistable = bool(value)
        self.block.program.touch()

    @property
    def stop_gradient(self) -> bool:
        return self.native.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.native.stop_gradient = bool(value)
        self.block.program.touch()

    @property
    def trainable(self) -> bool:
        return self.native.trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.native.trainable = bool(value)
        self.block.program.touch()

    def __str__(self) -> str:
        return str(self.native)

    def __repr__(self) -> str:
        return f"<{self}>"

    # Arithmetic appends operators, with another variable or with a number on either side.

    def _with(self, other: Any, kind: str, scale: Any, bias: Any) -> "Variable":
        """scale * self + bias if `other` is a number, else an elementwise operator."""
        from paddle.fluid.layers import ops
        if isinstance(other, Variable):
            return ops.elementwise(kind, self, other)
        return ops.scale(self, scale, bias) if isinstance(other, numbers.Real) else NotImplemented

    def __add__(self, other: Any) -> "Variable":
        return self._with(other, "add", 1.0, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Variable":
        return self._with(other, "sub", 1.0, -other if isinstance(other, numbers.Real) else 0.0)

    def __rsub__(self, other: Any) -> "Variable":
        return self._with(other, "sub", -1.0, other)

    def __mul__(self, other: Any) -> "Variable":
        return self._with(other, "mul", other, 0.0)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Variable":
        return self._with(other, "div", 1.0 / other if isinstance(other, numbers.Real) else 1.0, 0.0)

    def __rtruediv__(self, other: Any) -> "Variable":
        from paddle.fluid.layers import ops
        return ops.scale(ops.pow(self, -1.0), float(other)) if isinstance(other, numbers.Real) else NotImplemented

    def __neg__(self) -> "Variable":
        return self * -1.0

    def __pow__(self, other: Any) -> "Variable":
        from paddle.fluid.layers import ops
        return ops.elementwise("pow", self, other) if isinstance(other, Variable) else ops.pow(self, other)


class Operator:
    """What a block does with variables."""

    def __init__(self, native: _core.Operation) -> None:
        self.native = native

    @property
    def type(self) -> str:
        return self.native.type

    @property
    def input_names(self) -> list[str]:
        return list(self.native.inputs)

    @property
    def output_names(self) -> list[str]:
        return list(self.native.outputs)

    @property
    def input_arg_names(self) -> list[str]:
        return [name for names in self.native.inputs.values() for name in names]

    @property
    def output_arg_names(self) -> list[str]:
        return [name for names in self.native.outputs.values() for name in names]

    @property
    def attr_names(self) -> list[str]:
        return list(self.native.attributes)

    def input(self, slot: str) -> list[str]:
        return list(self.native.inputs.get(slot, []))

    def output(self, slot: str) -> list[str]:
        return list(self.native.outputs.get(slot, []))

    def attr(self, name: str) -> Any:
        return self.native.attributes[name]

    def all_attrs(self) -> dict[str, Any]:
        return self.native.attributes

    def has_attr(self, name: str) -> bool:
        return name in self.native.attributes

    def __str__(self) -> str:
        return str(self.native)

    __repr__ = __str__


class Block:
    """Variables and operators, in the order in which they were made."""

    def __init__(self, program: "Program", index: int) -> None:
        self.program, self.idx = program, index
        self.native = program.native.block(index)
        self._known: dict[str, Variable] = {}

    def view(self, native: _core.Variable) -> Variable:
        """The one view of a variable of this block."""
        found = self._known.get(native.name)
        if found is None:
            found = self._known[native.name] = Variable(self, native)
        return found

    @property
    def parent_idx(self) -> int:
        return self.native.parent

    @property
    def vars(self) -> dict[str, Variable]:
        return {native.name: self.view(native) for native in self.native.variables}

    @property
    def ops(self) -> list[Operator]:
        return [Operator(native) for native in self.native.operations]

    def has_var(self, name: str) -> bool:
        return self.native.find_here(name) is not None

    def var(self, name: str) -> Variable:
        if not isinstance(name, str):
            raise TypeError(f"var: a variable's name is a string, not {type(name).__name__}")
        native = self.native.find_here(name)
        if native is None:
            raise ValueError(f"block {self.idx} has no variable {name!r}")
        return self.view(native)

    def all_parameters(self) -> list[Variable]:
        return [self.view(native) for native in self.native.variables if native.is_parameter]

    def create_var(self, name: str | None = None, shape: Any = (), dtype: str = "float32", lod_level: int = 0,
                   persistable: bool = False, stop_gradient: bool = False, is_data: bool = False,
                   type: str = "lod_tensor") -> Variable:
        name = unique_name.generate("_generated_var") if name is None else name
        native = self.native.add_variable(name, type, list(shape or ()), dtype_name(dtype), lod_level, persistable, stop_gradient,
                                          is_data)
        self.program.touch()
        return self.view(native)


class Program:
    """A network, as blocks of operators. `version` counts its changes."""

    def __init__(self, native: _core.Program | None = None) -> None:
        self.native = _core.Program() if native is None else native
        self.version = 0
        self._blocks: list[Block] = []

    def touch(self) -> None:
        self.version += 1

    @property
    def random_seed(self) -> int:
        return self.native.random_seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        self.native.random_seed = int(seed)
        self.touch()

    @property
    def num_blocks(self) -> int:
        return self.native.block_count

    @property
    def blocks(self) -> list[Block]:
        while len(self._blocks) < self.native.block_count:
            self._blocks.append(Block(self, len(self._blocks)))
        return self._blocks

    def block(self, index: int) -> Block:
        return self.blocks[index]

    def global_block(self) -> Block:
        return self.blocks[0]

    def current_block(self) -> Block:
        return self.blocks[0]

    def list_vars(self) -> Iterator[Variable]:
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self) -> list[Variable]:
        return [parameter for block in self.blocks for parameter in block.all_parameters()]

    def clone(self, for_test: bool = False) -> "Program":
        """A copy; `for_test` without what trains, and with dropout and batch_norm as they are in tests."""
        return Program(self.native.clone_for_test() if for_test else self.native.clone())

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        return str(self.native)

    def serialize_to_string(self) -> bytes:
        return self.native.to_bytes()

    @staticmethod
    def parse_from_string(binary_str: bytes) -> "Program":
        return Program(_core.Program.from_bytes(binary_str))

    def __str__(self) -> str:
        return str(self.native)


def dtype_name(dtype: Any) -> str:
    """"float32" of a string, a NumPy dtype or type."""
    if isinstance(dtype, str):
        return dtype
    import numpy
    try:
        return numpy.dtype(dtype).name
    except TypeError as error:
        raise TypeError(f"dtype: {dtype!r} is none; for instance 'float32'") from error


# Fluid's numbers of its element types, which attributes of operators hold.
_TYPE_CODES = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6, "uint8": 20, "int8": 21}


def type_code(layer: str, dtype: Any) -> int:
    """The number of an element type."""
    name = dtype_name(dtype)
    if name not in _TYPE_CODES:
        raise ValueError(f"layers.{layer}: dtype {name!r}: there are {', '.join(_TYPE_CODES)}")
    return _TYPE_CODES[name]


_main, _startup = Program(), Program()


def default_main_program() -> Program:
    """The program that layers go to."""
    return _main


def default_startup_program() -> Program:
    """The program that gives parameters their first values."""
    return _startup


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Program | None = None) -> Iterator[None]:
    """Layers that are made inside go to these programs."""
    global _main, _startup
    for name, program in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(program, Program) and not (program is None and name == "startup_program"):
            raise TypeError(f"program_guard: {name} is a fluid.Program, not {type(program).__name__}")
    before = _main, _startup
    _main, _startup = main_program, _startup if startup_program is None else startup_program
    try:
        yield
    finally:
        _main, _startup = before


@contextlib.contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Groups operators for people who look at a graph; names and results stay as they are."""
    yield


def in_dygraph_mode() -> bool:
    return False


def builder(layer: str) -> _core.Builder:
    """What appends to the present programs; errors name the layer and the user's line."""
    _main.touch()
    _startup.touch()
    made = _core.Builder(_main.native, _startup.native, unique_name.generator())
    made.at(layer, *call_site())
    return made


def view(native: _core.Variable) -> Variable:
    """Of a variable that a builder has made in the main program."""
    return _main.global_block().view(native)


def native_of(argument: str, value: Any, layer: str) -> _core.Variable:
    """The variable that a layer was given."""
    if not isinstance(value, Variable):
        raise TypeError(f"layers.{layer}: {argument} is a variable of a program, not {type(value).__name__}")
    return value.native
