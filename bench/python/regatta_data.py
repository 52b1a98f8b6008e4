"""Batches of regattarec.data as tensors, and nothing done with them, one core.
Usage: regatta_data.py PATH     (PATH.txt by regatta_rounds write)"""
import sys

import peers  # noqa: F401
import rounds

rounds.one_core()
import data  # noqa: E402
import regattarec.data  # noqa: E402


def main(path):
    batches = regattarec.data.Dataset(path + ".txt", slots=data.SLOTS, dense_dim=data.DENSE, batch_size=rounds.BATCH,
                                      tensors=True)
    rounds.serve(lambda: sum(len(batch.labels) for batch in batches))


main(*sys.argv[1:])
