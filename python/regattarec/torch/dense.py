"""Dense parameters that live where the tables live, and the optimizers that servers have a rule for."""
import typing
from collections.abc import Iterable

import torch

from regattarec import errors
from regattarec.rules import Constant
from regattarec.torch.arrays import floats, view

if typing.TYPE_CHECKING:
    from regattarec.job import Job

Group = dict[str, typing.Any]
Served = tuple[dict[str, typing.Any], tuple[str, ...]]  # a rule, and what must not be set


class Dense:
    """Dense parameters that live where the tables live. An optimizer's formula becomes the rule of their table."""

    def __init__(self, optimizer: torch.optim.Optimizer, modules: Iterable[torch.nn.Module]) -> None:
        self.optimizer = optimizer
        self.groups: list[Group] = list(optimizer.param_groups)
        self.parameters: list[torch.Tensor] = [p for group in self.groups for p in group["params"]]
        self.sizes = [p.numel() for p in self.parameters]
        self._sums: torch.Tensor | None = None  # memory of the gradients
        names = {id(p): name for module in modules for name, p in module.named_parameters()}
        self.names = [names.get(id(p), f"parameter{i}") for i, p in enumerate(self.parameters)]
        if len(set(self.names)) < len(self.names):
            self.names = [f"parameter{i}" for i in range(len(self.parameters))]
        for name, p in zip(self.names, self.parameters):
            if p.dtype != torch.float32:
                raise errors.InvalidArgumentError(f"dense='server': {name} is {p.dtype}; it must be torch.float32")

    def description(self) -> dict[str, typing.Any]:
        return {"parameters": [{"name": name, "shape": list(p.shape) or [1], "init": Constant(0.0).config()}
                               for name, p in zip(self.names, self.parameters)],
                "rule": dense_rule(self.optimizer)}

    def fill(self, job: "Job") -> None:
        """The first worker's values become everybody's, or those of a save that the servers began with."""
        if not job.fleet.loaded_epochs and not job.fleet.loaded_steps:
            job.fleet.fill_dense(view(torch.cat([p.detach().to("cpu").reshape(-1) for p in self.parameters])))
        self.read(job)

    def read(self, job: "Job") -> None:
        values = torch.empty(sum(self.sizes))
        job.fleet.read_dense(view(values))
        self._put(values)

    def refresh(self, job: "Job") -> None:
        """Takes the values of the next step."""
        job.pull([], True)
        assert job.steps is not None
        self._put(typing.cast(torch.Tensor, job.steps.dense()))

    def _put(self, values: torch.Tensor) -> None:
        with torch.no_grad():
            for p, piece in zip(self.parameters, torch.split(values, self.sizes)):
                p.copy_(piece.view(p.shape))

    def rate(self) -> float:
        """The optimizer's present learning rate."""
        rates = {float(group["lr"]) for group in self.groups}
        if len(rates) > 1:
            raise errors.InvalidArgumentError(f"dense='server': the parameter groups have the rates {sorted(rates)}; "
                                              "one rule updates them all, with one")
        return rates.pop()

    def gradients(self, factor: float, samples: int, rows: bool) -> list[tuple[int, torch.Tensor]]:
        """(offset, gradient as a sum over the samples); none if neither a parameter nor a row has one. Until the next."""
        if not rows and all(p.grad is None or not p.grad.any() for p in self.parameters):
            return []  # no backward: zeros would be an update, of a rule with a memory
        if self._sums is None:
            self._sums = torch.empty(sum(self.sizes))
        sums = iter(torch.split(self._sums, self.sizes))
        for group in self.groups:
            for p, out in zip(group["params"], sums):
                if p.grad is None:
                    out.zero_()
                else:
                    torch.mul(floats(p.grad, -1), factor, out=out)
                if group.get("weight_decay"):
                    out.add_(floats(p, -1), alpha=group["weight_decay"] * samples)
        return [(0, self._sums)]


# Optimizers whose formula a server has: what must be so, and the rule.
def _sgd(group: Group) -> Served:
    if group["momentum"] == 0:
        return {"name": "sgd"}, ()
    return {"name": "momentum", "momentum": group["momentum"], "nesterov": bool(group["nesterov"])}, ("dampening",)


def _adam(group: Group) -> Served:
    beta1, beta2 = group["betas"]
    return {"name": "adam", "beta1": beta1, "beta2": beta2, "epsilon": group["eps"]}, (
        "amsgrad", "decoupled_weight_decay")


def _adagrad(group: Group) -> Served:
    return {"name": "adagrad", "epsilon": group["eps"]}, ("lr_decay", "initial_accumulator_value")


_RULES: dict[type, typing.Callable[[Group], Served]] = {
    torch.optim.SGD: _sgd, torch.optim.Adam: _adam, torch.optim.Adagrad: _adagrad}
_SERVED = "SGD (with momentum), Adam and Adagrad"


def dense_rule(optimizer: torch.optim.Optimizer) -> dict[str, typing.Any]:
    """The rule of a table of dense parameters that does what `optimizer` does."""
    make = _RULES.get(type(optimizer))
    if make is None:
        raise errors.InvalidArgumentError(
            f"dense='server': servers cannot do what {type(optimizer).__name__} does; they have {_SERVED}. "
            "dense='local' keeps the dense parameters in this process, with any optimizer")
    rules = []
    for group in optimizer.param_groups:
        rule, unset = make(group)
        for name in (*unset, "maximize"):
            if group.get(name):
                raise errors.InvalidArgumentError(
                    f"dense='server': {type(optimizer).__name__} with {name}={group[name]!r} is not what servers do")
        rules.append(rule | {"learning_rate": float(group["lr"])})
    if any(rule != rules[0] for rule in rules):
        raise errors.InvalidArgumentError(
            "dense='server': all parameter groups need the same settings, for one rule updates them all")
    return rules[0]
