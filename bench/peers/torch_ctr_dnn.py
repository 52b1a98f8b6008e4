"""CTR-DNN in PyTorch, one core: 26 slots, dim 10, 400-400-400, batch 1000, sparse embedding with SparseAdam and Adam
for the rest.
Usage: torch_ctr_dnn.py text|memory PATH     (PATH.txt and PATH.bin by regatta_rounds write; see rounds.py)
With PEER_BAGS=1 the rows come from an EmbeddingBag, else from an Embedding: there is one id a slot."""
import os
import sys

import rounds

rounds.one_core()
import torch  # noqa: E402
from torch import nn  # noqa: E402

import ctr_dnn  # noqa: E402
import data  # noqa: E402


def lookup():
    """The table, and a function from ids [batch, slots] to their rows."""
    if "PEER_BAGS" not in os.environ:
        table = nn.Embedding(rounds.ROWS, ctr_dnn.DIM, sparse=True)
        return table, table
    table = nn.EmbeddingBag(rounds.ROWS, ctr_dnn.DIM, mode="sum", sparse=True, include_last_offset=True)
    offsets = torch.arange(rounds.BATCH * data.SLOTS + 1)
    return table, lambda ids: table(ids.view(-1), offsets[:ids.numel() + 1])


def tensors(batch):
    return [torch.from_numpy(array) for array in batch]


def main(kind, path):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    table, rows_of = lookup()
    nn.init.uniform_(table.weight, -0.05, 0.05)
    mlp = ctr_dnn.Mlp()
    sparse = torch.optim.SparseAdam([table.weight], lr=ctr_dnn.RATE)
    dense = ctr_dnn.adam(mlp.layers.parameters())
    in_memory = None
    if kind == "memory":
        in_memory = [tensors(batch) for batch in data.text_batches(path + ".txt", rounds.BATCH, rounds.ROWS)]

    def one_pass():
        samples = 0
        batches = in_memory or map(tensors, data.text_batches(path + ".txt", rounds.BATCH, rounds.ROWS))
        for labels, features, ids in batches:
            sparse.zero_grad(set_to_none=True)
            dense.zero_grad(set_to_none=True)
            mlp.backward(rows_of(ids), features, labels)
            sparse.step()
            dense.step()
            samples += len(labels)
        return samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
