"""Steps of a table of dim 16 with no network: a lookup, a gradient, a commit, for batches in memory, one core.
Usage: regatta_steps.py PATH     (PATH.txt by regatta_rounds write)"""
import sys

import peers  # noqa: F401
import rounds

rounds.one_core()
import torch  # noqa: E402

import data  # noqa: E402
import regattarec.data  # noqa: E402
import regattarec.torch as rt  # noqa: E402

DIM = 16


def main(path):
    torch.set_num_threads(1)
    table = rt.EmbeddingBag(None, DIM, mode="sum", include_last_offset=True, rule=rt.Adagrad(lr=0.01))
    optimizer = rt.wrap(None, table)
    batches = list(regattarec.data.Dataset(path + ".txt", slots=data.SLOTS, dense_dim=data.DENSE,
                                           batch_size=rounds.BATCH))
    gradient = torch.full((rounds.BATCH * data.SLOTS, DIM), 0.001)

    def one_pass():
        samples = 0
        for batch in batches:
            table(batch.keys, batch.offsets).backward(gradient)
            optimizer.step()
            samples += len(batch.labels)
        return samples

    rounds.serve(one_pass)


main(*sys.argv[1:])
