"""Saves of tables together with the states of models and optimizers."""
import typing
from collections.abc import Iterable, Sequence

import torch

from regattarec import _core, arguments, errors
from regattarec import job as _job
from regattarec.torch import tensors

Blobs = dict[str, bytes]


def local_parameters() -> list[torch.Tensor]:
    """Those of the wrapped optimizer that it updates in this process."""
    job = _job.current()
    if job.optimizer is None or job.dense is not None:
        return []
    return [p for group in job.optimizer.param_groups if "regatta_table" not in group for p in group["params"]]


def states(epoch: int, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None,
           parameters: Sequence[torch.Tensor] = ()) -> Blobs:
    """What a save holds besides the tables, as blobs by name."""
    blobs = {"torch/epoch": tensors.dump(epoch)}
    if model is not None:
        blobs["torch/model"] = tensors.dump(dict(model.state_dict()))
    if optimizer is not None:
        blobs["torch/optimizer"] = tensors.dump(optimizer.state_dict())
    if parameters:
        blobs["torch/parameters"] = tensors.dump(list(parameters))
    return blobs


def taken(blobs: Blobs, path: str, name: str) -> typing.Any:
    """The value of a blob of `states`, of the save in `path`."""
    if f"torch/{name}" not in blobs:
        raise errors.NotFoundError(f"{path} holds no torch/{name}: the program that saved it did not name one")
    return tensors.load(blobs[f"torch/{name}"])


def restore(blobs: Blobs, path: str, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None,
            parameters: Sequence[torch.Tensor] = ()) -> None:
    """Puts back what `states` took."""
    if parameters:
        saved = taken(blobs, path, "parameters")
        if [p.shape for p in saved] != [p.shape for p in parameters]:
            raise errors.FailedPreconditionError(
                f"{path} holds other dense parameters than the optimizer has: "
                f"{[tuple(p.shape) for p in saved]}, not {[tuple(p.shape) for p in parameters]}")
        with torch.no_grad():
            for p, value in zip(parameters, saved):
                p.copy_(value)
    targets: tuple[tuple[str, typing.Any], ...] = (("model", model), ("optimizer", optimizer))
    for name, target in targets:
        if target is None:
            continue
        state = taken(blobs, path, name)
        try:
            target.load_state_dict(state)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise errors.FailedPreconditionError(f"{path} holds the state of another {name}: {error}") from error


def _checked(model: typing.Any, optimizer: typing.Any, parameters: typing.Any) -> list[torch.Tensor]:
    """The parameters, of arguments that have states."""
    for name, given, example in (("model", model, "torch.nn.Module"), ("optimizer", optimizer, "torch.optim.Optimizer")):
        other = torch.optim.Optimizer if name == "model" else torch.nn.Module
        if given is not None and (isinstance(given, (other, type)) or not hasattr(given, "load_state_dict")):
            raise TypeError(f"{name}: it is a {example}, not a {type(given).__name__}")
    if isinstance(parameters, torch.Tensor) or not isinstance(parameters, Iterable):
        raise TypeError(f"parameters: a {type(parameters).__name__} is no list of tensors")
    listed = list(parameters)
    for given in listed:
        if not isinstance(given, torch.Tensor):
            raise TypeError(f"parameters: a {type(given).__name__} is no tensor")
    return listed


def save(path: arguments.AnyPath, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None,
         epoch: int = 0, parameters: Iterable[torch.Tensor] = ()) -> None:
    """Saves all tables with the state of their rules, and the states of `model` and `optimizer`, to a folder.

    All workers call it; the first one writes. `regatta checkpoint ls` shows the save, servers of any number load it.

        >>> import regattarec.torch as rt
        >>> items, layer = rt.Embedding(None, 2), torch.nn.Linear(2, 1)
        >>> optimizer = rt.wrap(torch.optim.Adam(layer.parameters()), items)
        >>> rt.save("model", model=layer, optimizer=optimizer, epoch=3)       # load("model", model=…, optimizer=…) gives 3
    """
    folder, epoch = arguments.path("path", path), arguments.whole("epoch", epoch)
    listed = _checked(model, optimizer, parameters)
    _job.current().save(folder, epoch, states(epoch, model, optimizer, listed))


def load(path: arguments.AnyPath, model: torch.nn.Module | None = None, optimizer: torch.optim.Optimizer | None = None,
         parameters: Iterable[torch.Tensor] = ()) -> int:
    """Loads what save wrote: the tables, and `model` and `optimizer` where they are named. Gives the epoch.

    It comes after wrap and before the first lookup. All workers call it, and read the folder.
    """
    folder = arguments.path("path", path)
    listed = _checked(model, optimizer, parameters)
    job = _job.current()
    job.load(folder)
    blobs: Blobs = _core.read_blobs(folder)
    restore(blobs, folder, model, optimizer, listed)
    served = getattr(optimizer, "_regatta_dense", None)
    if served is not None:
        served.read(job)
    return int(tensors.load(blobs["torch/epoch"])) if "torch/epoch" in blobs else 0
