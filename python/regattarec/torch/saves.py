"""Saves of tables together with the states of models and optimizers."""
import os

import torch

from regattarec import _core, errors
from regattarec import job as _job
from regattarec.torch import tensors


def local_parameters():
    """Those of the wrapped optimizer that it updates in this process."""
    job = _job.current()
    if job.optimizer is None or job.dense is not None:
        return []
    return [p for group in job.optimizer.param_groups if "regatta_table" not in group for p in group["params"]]


def states(epoch, model=None, optimizer=None, parameters=()):
    """What a save holds besides the tables, as blobs by name."""
    blobs = {"torch/epoch": tensors.dump(epoch)}
    if model is not None:
        blobs["torch/model"] = tensors.dump(dict(model.state_dict()))
    if optimizer is not None:
        blobs["torch/optimizer"] = tensors.dump(optimizer.state_dict())
    if parameters:
        blobs["torch/parameters"] = tensors.dump(list(parameters))
    return blobs


def taken(blobs, path, name):
    """The value of a blob of `states`, of the save in `path`."""
    if f"torch/{name}" not in blobs:
        raise errors.NotFoundError(f"{path} holds no torch/{name}: the program that saved it did not name one")
    return tensors.load(blobs[f"torch/{name}"])


def restore(blobs, path, model=None, optimizer=None, parameters=()):
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
    for name, target in (("model", model), ("optimizer", optimizer)):
        if target is not None:
            target.load_state_dict(taken(blobs, path, name))


def save(path, model=None, optimizer=None, epoch=0, parameters=()):
    """Saves all tables with the state of their rules, and the states of `model` and `optimizer`, to a folder.

    All workers call it; the first one writes. `regatta checkpoint ls` shows the save, servers of any number load it.
    """
    _job.current().save(os.fspath(path), epoch, states(epoch, model, optimizer, parameters))


def load(path, model=None, optimizer=None, parameters=()):
    """Loads what save wrote: the tables, and `model` and `optimizer` where they are named. Gives the epoch.

    It comes after wrap and before the first lookup. All workers call it, and read the folder.
    """
    job = _job.current()
    path = os.fspath(path)
    job.load(path)
    blobs = _core.read_blobs(path)
    restore(blobs, path, model, optimizer, parameters)
    served = getattr(optimizer, "_regatta_dense", None)
    if served is not None:
        served.read(job)
    return tensors.load(blobs["torch/epoch"]) if "torch/epoch" in blobs else 0
