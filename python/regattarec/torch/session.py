"""Sessions of PyTorch programs: what a save holds besides the tables, and random numbers."""
import random
import typing
from collections.abc import Iterable

import torch

from regattarec import arguments, errors
from regattarec import session as _session
from regattarec.torch import saves, tensors


class HasState(typing.Protocol):
    """A scheduler, for instance."""

    def state_dict(self) -> dict[str, typing.Any]: ...

    def load_state_dict(self, state_dict: dict[str, typing.Any]) -> typing.Any: ...


class Session(_session.Session):
    """A run in epochs, which `session` makes."""

    def __init__(self, save: arguments.AnyPath | None = None, *, model: torch.nn.Module | None = None,
                 state: "Iterable[HasState]" = (), **options: typing.Any) -> None:
        if model is not None and not isinstance(model, torch.nn.Module):
            raise TypeError(f"model is a torch.nn.Module, not {type(model).__name__}")
        if not isinstance(state, Iterable) or hasattr(state, "state_dict"):
            raise TypeError(f"state: a {type(state).__name__} is no list of objects with a state; give [scheduler]")
        self._objects = list(state)
        for thing in self._objects:
            if not hasattr(thing, "state_dict") or not hasattr(thing, "load_state_dict"):
                raise TypeError(f"state: a {type(thing).__name__} has no state_dict and load_state_dict")
        self._model = model
        super().__init__(save, **options)

    def _state(self) -> dict[str, bytes]:
        blobs = saves.states(self.epoch, self._model, self._job.optimizer, saves.local_parameters())
        for i, thing in enumerate(self._objects):
            blobs[f"torch/state/{i}"] = tensors.dump(thing.state_dict())
        return blobs

    def _load(self, blobs: dict[str, bytes]) -> None:
        path = self._run.resumed_from
        try:
            saves.restore(blobs, path, self._model, self._job.optimizer, saves.local_parameters())
            for i, thing in enumerate(self._objects):
                thing.load_state_dict(saves.taken(blobs, path, f"state/{i}"))
        except errors.NotFoundError as error:
            raise errors.NotFoundError(f"{error}. Save with the same arguments, or begin anew with resume=False") from error

    def _local_state(self) -> list[str]:
        found = list(self._job.local_state)
        if self._objects:
            found.append("the objects of state=")
        if self._model is not None and any(True for _ in self._model.buffers()):
            found.append("the buffers of model=")
        return found

    def _plant(self, number: int) -> None:
        torch.manual_seed(number)
        random.seed(number)

    def _others_ended(self, error: BaseException) -> bool:
        """A worker that averages its gradients hears of another's end from torch.distributed, in words."""
        return super()._others_ended(error) or (
            torch.distributed.is_initialized() and isinstance(error, RuntimeError)
            and any(word in str(error) for word in ("gloo", "NCCL", "Connection closed by peer", "Connection reset")))

    def _goes_on(self, has_batch: bool) -> bool:
        """Workers that average their gradients make every step together, or wait for each other until a timeout."""
        if self._job.fleet.worker_num == 1 or not torch.distributed.is_initialized():
            return has_batch
        device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
        having = torch.tensor([int(has_batch)], device=device)
        torch.distributed.all_reduce(having)
        if 0 < having.item() < torch.distributed.get_world_size():
            raise errors.FailedPreconditionError(
                f"{having.item()} of {torch.distributed.get_world_size()} workers have a batch left in epoch {self.epoch}, and "
                "DistributedDataParallel needs as many at each: give every worker as many samples, or stop all at the "
                "same batch with itertools.islice")
        return has_batch


def session(save: arguments.AnyPath | None = None, *, model: torch.nn.Module | None = None, state: Iterable[HasState] = (),
            resume: bool = True, checkpoint_minutes: float = 0, checkpoint_steps: int = 0, keep_epochs: int = 0,
            seed: int | None = 0, metric: typing.Literal["binary", "regression"] = "binary",
            progress: bool | None = None) -> Session:
    """A run in epochs: `with rt.session(save="model", checkpoint_minutes=10) as s`.

    `save` is the folder of the saves: one an epoch, and every `checkpoint_minutes` or `checkpoint_steps`; `keep_epochs`
    of them stay (0: all). A run that was interrupted goes on from there; with `resume=False` it begins anew. `model` and
    the objects of `state` (a scheduler) are saved and restored too. `seed` seeds PyTorch's and Python's random numbers
    at every step, so that a run that comes back draws the same ones; None leaves them alone. `metric` is "binary" (AUC
    and others) or "regression". `progress` shows a line while an epoch goes on: None on a terminal and in a notebook.
    """
    return Session(save, model=model, state=state, resume=resume, checkpoint_minutes=checkpoint_minutes,
                   checkpoint_steps=checkpoint_steps, keep_epochs=keep_epochs, seed=seed, metric=metric, progress=progress)
