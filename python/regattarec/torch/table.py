"""Tables as modules and optimizers see them, and what the lookups of a step add up to."""
import math
import numbers

import torch

from regattarec import errors
from regattarec import job as _job
from regattarec.rules import Init, Rule
from regattarec.torch.arrays import view

_ONE = torch.zeros(1)


class Table:
    """A table as modules and optimizers see it: what its lookups of the present step were, and their gradients.

    Between backward and step the gradients of the step's rows are in `rows.grad`, where gradient scalers and clipping
    look for them. The shape of `rows` changes from step to step, and it has no memory. That of the gradients is kept.
    """

    def __init__(self, name, dim, rule, init, index):
        self.name, self.dim, self.rule, self.init, self.index = name, dim, rule, init, index
        self.optimizer = None  # whose step updates it
        self.rows = torch.nn.Parameter(torch.empty(0, dim))
        self._memory = torch.empty(0, dim)
        self._grad = None  # of rows, as it was made
        self._lookups = []  # whose gradients are in rows.grad, in this order

    def add(self, lookup, grad):
        """Merges the gradient of a lookup's output into one of each key, behind those of earlier lookups."""
        if self.optimizer is None and _job.current().optimizer is not None:
            raise errors.FailedPreconditionError(
                f"table '{self.name}' was left out of wrap: no step updates its rows. Name its module in wrap, or freeze it: "
                "regattarec.torch.freeze(module)")
        earlier = self.rows.grad
        if earlier is None:
            self._lookups, begin = [], 0
        else:
            begin = len(earlier)
        end = begin + lookup.keys
        if end > len(self._memory) or (begin and earlier is not self._grad):
            self._memory = torch.empty(end + end // 8, self.dim)
            if begin:
                self._memory[:begin] = earlier
        self._grad = self._memory[:end]
        lookup.merge(view(grad), view(self._grad[begin:] if begin else self._grad))
        self._lookups.append(lookup)
        self.rows.grad = None
        self.rows.data = _ONE.expand(end, self.dim)
        self.rows.grad = self._grad

    def take(self):
        """(lookup, gradients) of the step, and none from then on."""
        grad, lookups = self.rows.grad, self._lookups
        self.rows.grad, self._grad, self._lookups = None, None, []
        if grad is None:
            return []
        if len(lookups) == 1:
            return [(lookups[0], grad)]
        parts = torch.split(grad, [lookup.keys for lookup in lookups])
        return list(zip(lookups, parts))


class Step:
    """What the lookups of the present step add up to."""

    def __init__(self):
        self.samples = 0
        self.given = None  # by step(n=)
        self.fresh = True  # whether the next lookup begins another batch

    def count(self, samples):
        if self.fresh:
            self.samples += samples
            self.fresh = False

    def take(self):
        n = self.samples if self.given is None else self.given
        self.__init__()
        return max(n, 1)


_tables = {}
_unnamed = 0  # tables that modules have made without a name
current = Step()


def known():
    """All tables of this program, by name."""
    return _tables


def find(name):
    """The table of that name."""
    if name not in _tables:
        names = ", ".join(sorted(_tables)) or "none"
        raise errors.NotFoundError(f"there is no table {name!r} in this program; there are: {names}")
    return _tables[name]


def unnamed():
    """The name of a module's own table: embedding, embedding_2, … in the order in which modules are made."""
    global _unnamed
    _unnamed += 1
    return "embedding" if _unnamed == 1 else f"embedding_{_unnamed}"


def declare(name, dim, rule, init, seed):
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
