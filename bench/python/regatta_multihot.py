"""MULTIHOT in PyTorch on a table of regattarec, one core, tensors in memory: the network and the rules of
peers/torch_multihot.py, over a table with as many rows.
Usage: regatta_multihot.py PATH     (PATH.bin by regatta_rounds write)"""
import sys

import peers  # noqa: F401
import rounds

rounds.one_core()
import torch  # noqa: E402

import multihot  # noqa: E402
import regattarec.torch as rt  # noqa: E402


def main(path):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batches = multihot.Batches(path)
    table = rt.EmbeddingBag(None, multihot.DIM, mode="sum", include_last_offset=True, rule=rt.Adagrad(lr=multihot.RATE))
    rows = batches.slots * batches.rows_a_slot
    table.fill(torch.arange(rows), torch.randn(rows, multihot.DIM))
    first_row = torch.arange(batches.slots) * batches.rows_a_slot
    in_memory = [(labels, dense, (ids + first_row.view(1, -1, 1)).flatten(), batches.offsets(len(labels)))
                 for labels, dense, ids in batches]
    model = multihot.Mlp(batches)
    rt.wrap(model.optimizer, table)

    def one_pass():
        for labels, dense, ids, offsets in in_memory:
            model.step(table(ids, offsets).view(len(labels), -1), dense, labels)
        return batches.samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
