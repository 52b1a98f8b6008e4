"""Clicks of regattarec.data and a logistic regression over a table, with NumPy alone: alone, or in a job.

    python3 steps.py DATA
    regatta launch --server_num=2 --worker_num=2 -- python3 steps.py DATA
"""
import sys

import numpy

from regattarec import _core, fleet, job
from regattarec.data import Dataset
from regattarec.fleet import role_maker
from regattarec.rules import Adagrad, Constant

SLOTS, BATCH = 4, 256


def main(data):
    fleet.init(role_maker.PaddleCloudRoleMaker())
    mine = job.current()
    mine.declare({"name": "slots", "dim": 1, "rule": Adagrad(lr=0.1).config(), "init": Constant(0.0).config(), "seed": 1})
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    fleet.init_worker()
    clicks = Dataset(data, slots=SLOTS, batch_size=BATCH, index=fleet.worker_index(), count=fleet.worker_num(),
                     tensors=False)
    losses = []
    for _ in range(4):
        for batch in clicks:
            samples = len(batch.labels)
            lookup = _core.Lookup(0, "sum", batch.keys, batch.offsets, None)
            rows = numpy.empty((lookup.bags, 1), numpy.float32)
            mine.pull([(lookup, rows, None)], True)
            chance = 1 / (1 + numpy.exp(-rows.reshape(samples, SLOTS).sum(1)))
            losses.append(-numpy.log(numpy.where(batch.labels > 0.5, chance, 1 - chance)).mean())
            gradient = numpy.empty((lookup.keys, 1), numpy.float32)
            lookup.merge(numpy.repeat(chance - batch.labels, SLOTS).astype(numpy.float32)[:, None], gradient)
            mine.commit(samples, [(lookup, gradient, None)])
    last = numpy.mean(losses[-5:])
    print(f"loss {last:.4f}; {fleet.worker_num()} workers", flush=True)
    fleet.stop_worker()
    if not last < 0.53:  # the data's own is 0.46, and who knows the share of clicks alone has 0.57
        sys.exit("nothing was learnt")


if __name__ == "__main__":
    main(sys.argv[1])
