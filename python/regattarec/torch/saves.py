"""Saves of tables together with the states of models and optimizers."""
from regattarec import _core, errors
from regattarec import job as _job
from regattarec.torch import tensors


def save(path, model=None, optimizer=None, epoch=0):
    """Saves all tables with the state of their rules, and the states of `model` and `optimizer`, to a folder.

    All workers call it; the first one writes. `regatta checkpoint ls` shows the save, servers of any number load it.
    """
    blobs = {"torch/epoch": tensors.dump(epoch)}
    if model is not None:
        blobs["torch/model"] = tensors.dump(dict(model.state_dict()))
    if optimizer is not None:
        blobs["torch/optimizer"] = tensors.dump(optimizer.state_dict())
    _job.current().save(str(path), epoch, blobs)


def load(path, model=None, optimizer=None):
    """Loads what save wrote: the tables, and `model` and `optimizer` where they are named. Gives the epoch.

    It comes after wrap and before the first lookup. All workers call it, and read the folder.
    """
    job = _job.current()
    job.load(str(path))
    blobs = _core.read_blobs(str(path))
    for name, target in (("model", model), ("optimizer", optimizer)):
        if target is None:
            continue
        if f"torch/{name}" not in blobs:
            raise errors.NotFoundError(f"{path} holds no state of a {name}: it was saved without {name}=")
        target.load_state_dict(tensors.load(blobs[f"torch/{name}"]))
    served = getattr(optimizer, "_regatta_dense", None)
    if served is not None:
        served.read(job)
    return tensors.load(blobs["torch/epoch"]) if "torch/epoch" in blobs else 0
