"""Rows of a table as PyTorch's own module, for what runs without tables."""
import torch

from regattarec import errors
from regattarec import job as _job
from regattarec.torch import table as _table
from regattarec.torch.call import Call
from regattarec.torch.modules import Module, keys_of

_KEYS_A_PULL = 100_000


def to_embedding(source, keys, *, freeze=True, padding_idx=None):
    """A torch.nn.Embedding whose row i is that of keys[i]; zeros where the table has none.

    `source` is an Embedding, an EmbeddingBag or the name of a table. `regatta checkpoint export` writes all rows of a
    save, with their keys, as an .npz.
    """
    table = source.table if isinstance(source, Module) else _table.find(source)
    keys = keys_of(torch.as_tensor(keys))
    if not keys.numel():
        raise errors.InvalidArgumentError("to_embedding: there are no keys")
    made = torch.nn.Embedding(keys.numel(), table.dim, padding_idx=padding_idx)
    with torch.no_grad():
        for begin in range(0, keys.numel(), _KEYS_A_PULL):
            part = keys[begin:begin + _KEYS_A_PULL]
            call = Call(table, "none", part, torch.tensor([0, len(part)]), None, 0, (len(part), table.dim), part.device, False)
            _job.current().pull([call.target], False)
            made.weight[begin:begin + len(part)] = call.result()
    made.weight.requires_grad_(not freeze)
    return made
