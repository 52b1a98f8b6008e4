"""Makes an optimizer's step update tables, too."""
import cmath
import contextlib
import types
import typing
from collections.abc import Callable, Iterable, Iterator

import torch

from regattarec import arguments, errors
from regattarec import job as _job
from regattarec.torch.arrays import view
from regattarec.torch.call import ahead
from regattarec.torch.dense import Dense
from regattarec.torch.modules import Module
from regattarec.torch.table import current as step
from regattarec.torch.table import Table, known

Optimizer = typing.TypeVar("Optimizer", bound=torch.optim.Optimizer)


def _tables_of(modules: Iterable[torch.nn.Module]) -> list[Table]:
    found = {} if modules else dict(known())
    for module in modules:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"wrap takes modules after the optimizer, not {type(module).__name__}")
        for part in module.modules():
            if isinstance(part, Module):
                found[part.table.name] = part.table
    if not found:
        raise errors.InvalidArgumentError("wrap: there is no Embedding or EmbeddingBag of regattarec " +
                                          ("in the modules" if modules else "in this program yet"))
    return list(found.values())


class TablesOnly(torch.optim.Optimizer):
    """Of a model that has tables only: the step that wrap makes is all that updates something."""

    def __init__(self) -> None:
        super().__init__([{"params": []}], {})
        self.param_groups.clear()

    def step(self, closure: typing.Any = None) -> None:  # type: ignore[override]
        """Nothing is left to do: wrap's step has called the closure and updated the rows."""


@typing.overload
def wrap(optimizer: Optimizer, *modules: torch.nn.Module, dense: typing.Literal["local", "server"] | None = None) -> Optimizer: ...


@typing.overload
def wrap(optimizer: None, *modules: torch.nn.Module, dense: None = None) -> torch.optim.Optimizer: ...


def wrap(optimizer: typing.Any, *modules: torch.nn.Module, dense: typing.Literal["local", "server"] | None = None) -> typing.Any:
    """Makes `optimizer.step()` update the tables of `modules` too, and returns the optimizer itself.

    Without modules these are all tables that the program has declared. For a model that has tables only, `optimizer` is
    None, and an optimizer of the tables is returned.

    Each table becomes a group of `optimizer.param_groups`, so that gradient scalers find its gradients. The rule of the
    table updates it; the optimizer does not.

    `dense` says where the other parameters are. "local": in this process, updated by the optimizer; alone, or with
    DistributedDataParallel. "server": with the tables, updated by a rule with the optimizer's formula and its present
    learning rate; all workers begin with the first one's values. The default is "server" for several workers without
    a process group, else "local".

        >>> import regattarec.torch as rt
        >>> items = rt.Embedding(None, 2, rule=rt.SGD(lr=1.0), init=rt.Constant(0.5))
        >>> layer = torch.nn.Linear(2, 1)
        >>> optimizer = rt.wrap(torch.optim.Adam(layer.parameters()), items)
        >>> items(torch.tensor([7])).sum().backward()
        >>> optimizer.step()
        >>> items(torch.tensor([7])).tolist()
        [[-0.5, -0.5]]
    """
    if optimizer is None:
        if dense == "server":
            raise errors.InvalidArgumentError("dense='server': without an optimizer there are no dense parameters")
        optimizer, dense = TablesOnly(), "local"
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer: wrap takes one of torch.optim first, or None for tables only, not {type(optimizer).__name__}")
    if dense is not None:
        arguments.choice("dense", dense, ("local", "server"))
    tables = _tables_of(modules)
    if getattr(optimizer, "_regatta_tables", None) is not None:
        raise errors.FailedPreconditionError("wrap: the optimizer was wrapped before; name all modules in one call")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise errors.InvalidArgumentError("wrap: LBFGS takes several looks at a loss in one step; tables make one")
    for table in tables:
        if table.optimizer is not None:
            raise errors.FailedPreconditionError(f"wrap: table '{table.name}' has an optimizer already; one step updates it")
    for group in optimizer.param_groups:
        if group.get("maximize"):
            raise errors.InvalidArgumentError("wrap: maximize=True: rules of rows minimise; negate the loss instead")
    job = _job.current()
    grouped = torch.distributed.is_available() and torch.distributed.is_initialized()
    if dense is None:
        dense = "server" if job.fleet.worker_num > 1 and not grouped else "local"
    served = Dense(optimizer, modules) if dense == "server" else None
    if served is not None:
        job.serve_dense(served.description(), lambda: served.fill(job), lambda: served.refresh(job))
    elif any(p.requires_grad for group in optimizer.param_groups for p in group["params"]):
        if job.fleet.worker_num > 1 and not grouped:
            raise errors.InvalidArgumentError(
                "dense='local' with several workers: each would train a network of its own. Call "
                "regattarec.torch.init_process_group() and wrap the network in DistributedDataParallel first, or leave it to "
                "the servers with dense='server'")
        job.local_state.append("dense parameters in the process (dense='local')")
    job.optimizer = optimizer
    for table in tables:
        table.optimizer = optimizer
        optimizer.add_param_group({"params": [table.rows], "lr": table.rule.lr, "regatta_table": table.name})
    ours: typing.Any = optimizer
    ours._regatta_tables, ours._regatta_dense = tables, served
    ours.step = types.MethodType(_step_of(optimizer, tables, served, _LocalDense(modules)), optimizer)
    ours.zero_grad = types.MethodType(_zero_grad_of(optimizer, tables), optimizer)
    ours._step_supports_amp_scaling = True  # a gradient scaler calls step() always, and says what to leave out
    return optimizer


def _zero_grad_of(optimizer: torch.optim.Optimizer, tables: list[Table]) -> Callable[..., None]:
    inner = optimizer.zero_grad

    def zero_grad(self: torch.optim.Optimizer, *args: typing.Any, **kwargs: typing.Any) -> None:
        for table in tables:
            table.rows.grad = None  # zeros would be an update of the rows
        inner(*args, **kwargs)

    return zero_grad


def _views(grads: list[tuple[typing.Any, torch.Tensor, float]]) -> list[_job.Gradient]:
    return [(lookup, view(grad), rate) for lookup, grad, rate in grads]


def _rate(group: dict[str, typing.Any]) -> float:
    try:
        return float(group["lr"])
    except (TypeError, ValueError, RuntimeError) as error:
        raise errors.InvalidArgumentError(
            f"the learning rate of table '{group['regatta_table']}' is {arguments.shown(group['lr'])}; it has to be a number") from error


class _LocalDense:
    """The dense parameters that the optimizer updates in this process, and what becomes of gradients with NaN or Inf."""

    def __init__(self, modules: Iterable[torch.nn.Module]) -> None:
        self._names = {id(p): name for module in modules for name, p in module.named_parameters()}

    @staticmethod
    def _gradients(optimizer: torch.optim.Optimizer) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(parameter, the elements of its gradient)."""
        for group in optimizer.param_groups:
            if "regatta_table" not in group:
                for p in group["params"]:
                    if (grad := p.grad) is not None:
                        yield p, grad._values() if grad.is_sparse else grad

    def bad(self, optimizer: torch.optim.Optimizer) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """(parameter, gradient) for each gradient with NaN or Inf."""
        if cmath.isfinite(sum(grad.sum().item() for _, grad in self._gradients(optimizer))):
            return []
        return [(p, grad) for p, grad in self._gradients(optimizer)  # a sum of large numbers may be Inf, too
                if not bool(torch.isfinite(grad).all())]

    def name(self, optimizer: torch.optim.Optimizer, parameter: torch.Tensor) -> str:
        if name := self._names.get(id(parameter)):
            return f"'{name}'"
        place = next((i, j) for i, group in enumerate(optimizer.param_groups)
                     for j, p in enumerate(group["params"]) if p is parameter)
        return f"param_groups[{place[0]}]['params'][{place[1]}], of the shape {tuple(parameter.shape)}"


@contextlib.contextmanager
def _no_scaler(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """What a gradient scaler has left at the optimizer is away: PyTorch 2's optimizers that do not unscale refuse it."""
    held: dict[str, typing.Any] = {name: vars(optimizer).pop(name) for name in ("grad_scale", "found_inf") if name in vars(optimizer)}
    try:
        yield
    finally:
        vars(optimizer).update(held)


def _step_of(optimizer: torch.optim.Optimizer, tables: list[Table], served: Dense | None,
             local: _LocalDense) -> Callable[..., typing.Any]:
    inner, scales = optimizer.step, getattr(optimizer, "_step_supports_amp_scaling", False)
    tables_only = isinstance(optimizer, TablesOnly)

    def commit(self: torch.optim.Optimizer, closure: Callable[[], typing.Any] | None = None) -> typing.Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        job = _job.current()
        found = getattr(self, "found_inf", None)
        scale = getattr(self, "grad_scale", None)
        rates = {group["regatta_table"]: _rate(group) for group in self.param_groups if "regatta_table" in group}
        parts = [(table.take(), rates[table.name]) for table in tables]
        taken = [(*part, rate) for part, rate in parts if part is not None]
        n = step.take()
        weight = n if job.weighs_steps else 1
        skipped = found is not None and bool(found)
        unscale = 1.0 if scale is None else 1.0 / float(scale)
        factor = weight * unscale
        grads = [] if skipped else taken
        if factor != 1:
            for _, grad, _ in grads:
                grad.mul_(factor)
        if served is not None:
            dense = [] if skipped else served.gradients(factor, weight, bool(grads))
            job.commit(n if grads or dense else 0, _views(grads), dense, served.rate() if dense else None)
            ahead.forget()
            served.refresh(job)
            return loss
        if tables_only:
            job.commit(n if grads else 0, _views(grads))
            ahead.forget()
            return loss
        bad = [] if skipped else local.bad(self)
        # Bad gradients of rows are refused by the commit, which names table and key.
        if bad and job.nan_policy == "abort" and all(bool(torch.isfinite(grad).all()) for _, grad, _ in grads):
            job.refuse(f"gradients of the dense parameters hold NaN or Inf; the first is {local.name(self, bad[0][0])}")
        if job.nan_policy == "clip":
            for _, grad in bad:
                grad.nan_to_num_(0.0, 0.0, 0.0)
        job.commit(n if grads else 0, _views(grads), bad_dense=bool(bad))
        ahead.forget()
        if not skipped and not (bad and job.nan_policy == "skip"):
            if scale is not None and not scales:
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is not None:
                            p.grad.mul_(unscale)
            if scales or (scale is None and found is None):
                inner()
            else:
                with _no_scaler(self):
                    inner()
        return loss

    return commit
