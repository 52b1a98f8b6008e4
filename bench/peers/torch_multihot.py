"""MULTIHOT in PyTorch, one core, tensors in memory: EmbeddingBag(sparse) of dim 16 over 26 slots of 20 ids, 128-64,
batch 1000, Adagrad.
Usage: torch_multihot.py PATH     (PATH.bin by regatta_rounds write; see rounds.py)"""
import sys

import rounds

rounds.one_core()
import torch  # noqa: E402

import multihot  # noqa: E402


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batches = multihot.Batches(path)
    # The slots' rows in one table, side by side: one lookup a step instead of 26.
    table = torch.nn.EmbeddingBag(batches.slots * batches.rows_a_slot, multihot.DIM, mode="sum", sparse=True,
                                  include_last_offset=True)
    first_row = torch.arange(batches.slots) * batches.rows_a_slot
    in_memory = [(labels, dense, (ids + first_row.view(1, -1, 1)).flatten(), batches.offsets(len(labels)))
                 for labels, dense, ids in batches]
    model = multihot.Mlp(batches)
    sparse = torch.optim.Adagrad(table.parameters(), lr=multihot.RATE)

    def one_pass():
        for labels, dense, ids, offsets in in_memory:
            sparse.zero_grad(set_to_none=True)
            model.step(table(ids, offsets).view(len(labels), -1), dense, labels)
            sparse.step()
        return batches.samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
