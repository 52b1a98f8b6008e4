"""Tables as modules and optimizers see them, and what the lookups of a step add up to."""
import math
import numbers
import typing

import torch

from regattarec import _core, errors
from regattarec import job as _job
from regattarec.rules import Init, Rule
from regattarec.torch.arrays import floats, view

_ONE = torch.zeros(1)
Part = tuple[_core.Lookup, torch.Tensor]  # a lookup and one gradient of each of its keys


class _Rows(torch.nn.Parameter):
    """The rows of a table as optimizers, gradient scalers and clipping see them: with a gradient, one of each key.

    It has no memory, and its shape is that of the gradient.
    """

    _table: "Table"

    def __new__(cls, table: "Table") -> "_Rows":
        made: _Rows = super().__new__(cls, torch.empty(0, table.dim))  # type: ignore[call-arg, assignment]
        made._table = table
        return made

    @property
    def grad(self) -> torch.Tensor | None:  # type: ignore[override]
        return self._table.gradient()

    @grad.setter
    def grad(self, value: torch.Tensor | None) -> None:
        self._table.replace(value)


class Table:
    """A table as modules and optimizers see it: what its lookups of the present step were, and their gradients.

    The gradients of a key in several lookups are added up when `rows.grad` is read, and not before. So a step of many
    lookups adds them up once.
    """

    def __init__(self, name: str, dim: int, rule: Rule, init: Init, index: int) -> None:
        self.name, self.dim, self.rule, self.init, self.index = name, dim, rule, init, index
        self.optimizer: torch.optim.Optimizer | None = None  # whose step updates it
        self.rows = _Rows(self)
        self._memory = torch.empty(0, dim)  # of the step's gradients, kept for the next one
        self._room, self._used = 0, 0  # in rows
        self._parts: list[Part] = []  # (lookup, one gradient of each of its keys)

    def __deepcopy__(self, memo: dict[int, object]) -> "Table":
        """A copy of a module shares its rows."""
        return self

    def __reduce__(self) -> typing.NoReturn:
        raise TypeError(f"table '{self.name}' cannot be pickled: its rows are not in the module. regattarec.torch.save saves them, "
                        "and regattarec.torch.to_embedding makes a torch.nn.Embedding, which can be")

    def add(self, lookup: _core.Lookup, grad: torch.Tensor) -> None:
        """Takes the gradient of a lookup's output."""
        if self.optimizer is None:
            if _job.current().optimizer is None:
                raise errors.FailedPreconditionError(
                    f"table '{self.name}' has no optimizer: no step would update its rows. Call "
                    "regattarec.torch.wrap(optimizer, ...) before the loop, or regattarec.torch.freeze(module)")
            raise errors.FailedPreconditionError(
                f"table '{self.name}' was left out of wrap: no step updates its rows. Name its module in wrap, or freeze it: "
                "regattarec.torch.freeze(module)")
        begin, self._used = self._used, self._used + lookup.keys
        if self._used > self._room:  # parts that are there keep the memory they have
            self._room = self._used + self._used // 8
            self._memory = torch.empty(self._room, self.dim)
        part = self._memory[begin:self._used]
        lookup.merge(view(grad), view(part))
        self._parts.append((lookup, part))

    def _merged(self) -> Part | None:
        """(lookup, gradients) of the step with each key once, or None."""
        if len(self._parts) > 1:
            whole = _core.Lookup.union([lookup for lookup, _ in self._parts])
            sums = torch.empty(whole.keys, self.dim)
            whole.merge(view(torch.cat([part for _, part in self._parts])), view(sums))
            self._parts = [(whole, sums)]
        return self._parts[0] if self._parts else None

    def gradient(self) -> torch.Tensor | None:
        """One gradient of each key that the step has looked up, or None."""
        merged = self._merged()
        if merged is None:
            return None
        grad = merged[1]
        if self.rows.shape != grad.shape:
            self.rows.data = _ONE.expand(grad.shape)
        return grad

    def replace(self, grad: torch.Tensor | None) -> None:
        """Another gradient of the same keys, or None."""
        if grad is None:
            self._parts, self._used = [], 0
            return
        present = self.gradient()
        if present is None or grad.shape != present.shape:
            raise errors.InvalidArgumentError(
                f"table '{self.name}': a gradient of {tuple(grad.shape)} in place of "
                f"{'none' if present is None else tuple(present.shape)}; it needs one of each key of the step")
        self._parts = [(self._parts[0][0], floats(grad, present.shape))]

    def take(self) -> Part | None:
        """(lookup, gradients) of the step, or None; and none from then on."""
        taken = self._merged()
        self._parts, self._used = [], 0
        return taken


class Step:
    """What the lookups of the present step add up to."""

    def __init__(self) -> None:
        self.samples = 0
        self.given: int | None = None  # by step(n=)
        self.fresh = True  # whether the next lookup begins another batch

    def count(self, samples: int) -> None:
        if self.fresh:
            self.samples += samples
            self.fresh = False

    def take(self) -> int:
        n = self.samples if self.given is None else self.given
        self.samples, self.given, self.fresh = 0, None, True
        return max(n, 1)


_tables: dict[str, Table] = {}
_unnamed = 0  # tables that modules have made without a name
current = Step()


def known() -> dict[str, Table]:
    """All tables of this program, by name."""
    return _tables


def find(name: str) -> Table:
    """The table of that name."""
    if name not in _tables:
        names = ", ".join(sorted(_tables)) or "none"
        raise errors.NotFoundError(f"there is no table {name!r} in this program; there are: {names}")
    return _tables[name]


def unnamed() -> str:
    """The name of a module's own table: embedding, embedding_2, … in the order in which modules are made."""
    global _unnamed
    _unnamed += 1
    return "embedding" if _unnamed == 1 else f"embedding_{_unnamed}"


def declare(name: str | None, dim: int, rule: Rule, init: Init, seed: int) -> Table:
    """The table of that name, which may have been declared alike before; without a name one of its own."""
    if not isinstance(rule, Rule):
        raise errors.InvalidArgumentError(f"rule: {rule!r} is none; for instance regattarec.torch.Adagrad(lr=0.05)")
    if not isinstance(init, Init):
        raise errors.InvalidArgumentError(f"init: {init!r} is none; for instance regattarec.torch.Uniform(0.01)")
    if not isinstance(dim, int) or dim < 1:
        raise errors.InvalidArgumentError(f"embedding_dim: {dim!r} is not a whole number above 0")
    name = unnamed() if name is None else name
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name.encode()) <= 256 or name == "dense":
        raise errors.InvalidArgumentError(
            f"table: {name!r} is no name for a table: at most 256 bytes of printable text, and not 'dense', under "
            "which saves have the other parameters")
    for field, value in (vars(rule) | vars(init)).items():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise errors.InvalidArgumentError(f"table '{name}': {field} is {value!r}, and no number that is finite")
    if not isinstance(seed, int) or seed < 0:
        raise errors.InvalidArgumentError(f"table '{name}': seed is {seed!r}, and no whole number from 0 on")
    index = _job.current().declare(
        {"name": name, "dim": dim, "rule": rule.config(), "init": init.config(), "seed": seed})
    if name not in _tables:
        _tables[name] = Table(name, dim, rule, init, index)
    return _tables[name]
