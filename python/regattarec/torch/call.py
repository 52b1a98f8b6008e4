"""One call of an embedding module: what it reads, and what it gives once its rows are there."""
import typing
from collections.abc import Sequence

import torch

from regattarec import _core
from regattarec import job as _job
from regattarec.torch.arrays import floats, view
from regattarec.torch.table import Table
from regattarec.torch.table import current as step

if typing.TYPE_CHECKING:
    from regattarec.torch.modules import Module

Arguments = tuple[typing.Any, ...]  # of a module's call


def _backward(ctx: typing.Any, grad: torch.Tensor) -> tuple[None, torch.Tensor | None, None]:
    _ = ctx.saved_tensors  # an error if they were freed
    step.fresh = True
    lookup, table = ctx.lookup, ctx.table
    flat = floats(grad, (-1, table.dim))
    table.add(lookup, flat)
    weights_grad = None
    if ctx.needs_input_grad[1]:
        weights_grad = torch.empty(lookup.ids)
        lookup.merge_weights(view(ctx.rows), view(flat), view(weights_grad))
        weights_grad = weights_grad.reshape(ctx.weights.shape).to(ctx.weights)
    return None, weights_grad, None


_backward_once = torch.autograd.function.once_differentiable(_backward)  # an error if it is differentiated again


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: typing.Any, anchor: torch.Tensor, weights: torch.Tensor | None,  # type: ignore[override]
                call: "Call") -> torch.Tensor:
        ctx.lookup, ctx.table, ctx.rows, ctx.weights = call.lookup, call.table, call.rows, weights
        ctx.save_for_backward(anchor)  # PyTorch refuses a second backward for what was saved, and without it counts twice
        out = call.out
        del call.out  # the output holds the call: a circle waits for the collector
        return out

    @staticmethod
    def backward(ctx: typing.Any, grad: torch.Tensor) -> tuple[None, torch.Tensor | None, None]:  # type: ignore[override]
        again = torch.is_grad_enabled()  # create_graph=True
        return (_backward_once if again else _backward)(ctx, grad)


_ANCHOR = torch.zeros((), requires_grad=True)  # an output has a gradient though no input has


class Call:
    """`keys` are int64 on the CPU, a bag in [bounds[i], bounds[i + 1]); `shape` is the output's, on `device`.

    `samples` is what it counts of a step. Without `train` nothing is learnt, and no row comes into being.
    """

    def __init__(self, table: Table, mode: str, keys: torch.Tensor, bounds: torch.Tensor, weights: torch.Tensor | None, samples: int,
                 shape: tuple[int, ...], device: torch.device, train: bool) -> None:
        values = None if weights is None else floats(weights, -1)
        self.table, self.weights, self.samples = table, weights, samples
        self.shape, self.device, self.train = shape, device, train
        self.lookup = _core.Lookup(table.index, mode, view(keys), view(bounds), None if values is None else view(values))
        self.out = torch.empty(self.lookup.ids if mode == "none" else self.lookup.bags, table.dim)
        needs_rows = train and weights is not None and weights.requires_grad
        self.rows = torch.empty(self.lookup.keys, table.dim) if needs_rows else None
        self._padding: tuple[_core.Lookup, torch.Tensor, torch.Tensor] | None = None

    def put_padding(self, key: int, where: torch.Tensor) -> None:
        """Outputs `where` are the row of that key, and take no gradient."""
        lookup = _core.Lookup(self.table.index, "none", view(torch.tensor([key])), view(torch.tensor([0, 1])), None)
        self._padding = lookup, torch.empty(1, self.table.dim), where

    @property
    def targets(self) -> list[_job.Target]:
        """What a job's pull fills, once."""
        found: list[_job.Target] = [(self.lookup, view(self.out), None if self.rows is None else view(self.rows))]
        if self._padding is not None:
            lookup, row, _ = self._padding
            found.append((lookup, view(row), None))
        return found

    def result(self) -> torch.Tensor:
        out = self.out
        if self._padding is not None:
            _, row, where = self._padding
            out[where] = row
        if self.train:
            step.count(self.samples)
            out = _Rows.apply(_ANCHOR, self.weights, self)
        if out.shape != self.shape:
            out = out.reshape(self.shape)
        return out if self.device.type == "cpu" else out.to(self.device)


class _Ahead:
    """Calls that were announced, until the module makes them or their step is over."""

    def __init__(self) -> None:
        self._calls: list[tuple["Module", Arguments, list[int], Call]] = []  # (module, its arguments, their versions, call)

    @staticmethod
    def _versions(arguments: Sequence[typing.Any]) -> list[int]:
        return [value._version for value in arguments if isinstance(value, torch.Tensor)]

    def put(self, module: "Module", arguments: Arguments, call: Call) -> None:
        self._calls.append((module, arguments, self._versions(arguments), call))

    def take(self, module: "Module", arguments: Arguments) -> Call | None:
        """The call of that module with these very tensors, with its rows; None if it was not announced for this step."""
        for i, (of, given, versions, call) in enumerate(self._calls):
            if (of is module and len(given) == len(arguments) and versions == self._versions(arguments)
                    and all(a is b for a, b in zip(given, arguments))):
                if not _job.current().has_pulled(call.lookup):
                    return None
                del self._calls[i]
                return call
        return None

    def forget(self) -> None:
        """A step is over: calls of it that the modules did not make."""
        if self._calls:
            waits = _job.current().waits_for_next_step
            self._calls = [entry for entry in self._calls if waits(entry[3].lookup)]


ahead = _Ahead()


def prefetch(*calls: "Sequence[Module | torch.Tensor | None]") -> None:
    """Announces lookups, so that those of a step are pulled together, and those of the next one while this one computes.

        rt.prefetch((users, user_ids), (items, item_ids, offsets))   # then users(user_ids), items(item_ids, offsets)

    Each call is a module and the arguments that it is going to be called with: the same tensors, unchanged. Before the
    first lookup of a step it is for this step, after that for the next one, whose rows a mode with servers may then
    fetch at once (async: they miss the updates of the present step). In evaluation, and for frozen modules, it does
    nothing.
    """
    from regattarec.torch.modules import Module
    targets = []
    for announced in calls:
        if not isinstance(announced, (tuple, list)) or len(announced) < 2 or not isinstance(announced[0], Module):
            raise TypeError("prefetch takes (module, its arguments …) for each lookup, for instance "
                            "prefetch((users, user_ids), (items, item_ids, offsets))")
        module, *arguments = announced
        if not module.learns():
            continue
        call = module.call(*arguments)
        ahead.put(module, module.whole(arguments), call)
        targets += call.targets
    if targets:
        _job.current().prefetch(targets)
