"""Rows of a table as PyTorch's own module, for what runs without tables."""
import torch

from regattarec import arguments, errors
from regattarec import job as _job
from regattarec.torch import table as _table
from regattarec.torch.call import Call
from regattarec.torch.modules import Ids, Module, listed_keys

_KEYS_A_PULL = 100_000


def to_embedding(source: Module | str, keys: Ids, *, freeze: bool = True, padding_idx: int | None = None) -> torch.nn.Embedding:
    """A torch.nn.Embedding whose row i is that of keys[i]; zeros where the table has none.

    `source` is an Embedding, an EmbeddingBag or the name of a table. `regatta checkpoint export` writes all rows of a
    save, with their keys, as an .npz.

        >>> from regattarec.torch import Embedding
        >>> words = Embedding.from_pretrained([[1.0, 2.0], [3.0, 4.0]], keys=[10, 20])
        >>> to_embedding(words, [20, 30])(torch.tensor([0, 1])).tolist()      # the table has no row of 30
        [[3.0, 4.0], [0.0, 0.0]]
    """
    if not isinstance(source, (Module, str)):
        raise TypeError(f"source: a {type(source).__name__} is neither an Embedding or EmbeddingBag of regattarec nor the name of a "
                        "table")
    table = source.table if isinstance(source, Module) else _table.find(source)
    found, frozen = listed_keys(keys), arguments.flag("freeze", freeze)
    count = found.numel()
    if not count:
        raise errors.InvalidArgumentError("to_embedding: there are no keys")
    if padding_idx is not None:
        padding_idx = arguments.whole("padding_idx", padding_idx, -count, count - 1, note=", nor None")
    made = torch.nn.Embedding(count, table.dim, padding_idx=padding_idx)
    with torch.no_grad():
        for begin in range(0, count, _KEYS_A_PULL):
            part = found[begin:begin + _KEYS_A_PULL]
            call = Call(table, "none", part, torch.tensor([0, len(part)]), None, 0, (len(part), table.dim), part.device, False)
            _job.current().pull(call.targets, False)
            made.weight[begin:begin + len(part)] = call.result()
    made.weight.requires_grad_(not frozen)
    return made
