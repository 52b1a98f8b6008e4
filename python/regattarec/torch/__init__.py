"""Embedding tables for PyTorch models, without a bound on their size.

    import regattarec.torch as rt
    emb = rt.EmbeddingBag(None, 16, mode="sum", table="slots", rule=rt.Adagrad(lr=0.05))
    opt = rt.wrap(torch.optim.Adam(mlp.parameters(), lr=1e-3), emb)
    for ids, offsets, dense, y in loader:
        loss = bce(mlp(emb(ids, offsets), dense), y)
        opt.zero_grad(); loss.backward(); opt.step()

The rows that a step reads are updated by `opt.step()`, where they are: in this process, or on servers if the
environment names them. The script does not change.
"""
import typing

from regattarec import arguments
from regattarec import job as _job
from regattarec import rules as _rules
from regattarec.rules import *  # noqa: F403
from regattarec.torch.call import prefetch
from regattarec.torch.export import to_embedding
from regattarec.torch.modules import Embedding, EmbeddingBag, freeze
from regattarec.torch.process_group import init_process_group
from regattarec.torch.saves import load, save
from regattarec.torch.session import session
from regattarec.torch.table import current as _step
from regattarec.torch.optimizer import wrap

__all__ = ["Embedding", "EmbeddingBag", "freeze", "prefetch", "to_embedding", "wrap",
           "session", "save", "load", "init", "init_process_group", "stop", "step", "worker_index", "worker_num"]
__all__ += _rules.__all__


def worker_index() -> int:
    """This worker's number, from 0 on; alone it is 0."""
    return _job.current().fleet.worker_index


def worker_num() -> int:
    """How many workers the job has; alone it is 1."""
    return _job.current().fleet.worker_num


def step(n: int | None = None) -> None:
    """Says how many samples the present step's loss is the mean of, if it is not the number of bags of its first lookup."""
    _step.given = arguments.whole("n", n, 1, arguments.UINT32)


def init(mode: typing.Literal["sync", "async", "half_async", "geo"] | None = None, geo_step: int | None = None,
         nan_policy: typing.Literal["abort", "skip", "clip"] | None = None) -> None:
    """How the job works; before wrap and the first lookup.

    `mode` is when workers see each other's updates: sync, async (the default), half_async or geo. `nan_policy` is what
    becomes of gradients with NaN or Inf: "abort" (the default) makes the step an error that names table and key, or
    the dense parameter, and nothing is learnt of it. "skip" leaves out such rows, and the dense parameters' update if one
    of their gradients is bad; "clip" takes such elements for 0. Both warn.
    """
    _job.current().use(mode, geo_step, nan_policy)


def stop() -> None:
    """This worker is done. It is called when the process ends, too."""
    _job.current().stop()
