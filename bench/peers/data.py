"""The benchmark's samples as numpy arrays: parsed from slot text, or read from the binary file beside it."""
import numpy

from rounds import DENSE, SLOTS


def text_batches(path, batch, rows):
    """Slot text with one id a slot, `batch` lines at a time: (labels, dense, ids below `rows`).

    The line's layout is known (label, 13 dense features, slots 1 to 26), so names need no lookup: they are cut out,
    and one call of numpy turns a batch into numbers. Doubles hold the ids, which are below 2^44, exactly.
    """
    first_id = 1 + DENSE
    colon = bytes.maketrans(b":\n", b"  ")
    with open(path, "rb", buffering=1 << 20) as file:
        while True:
            lines = [line for _, line in zip(range(batch), file)]
            if not lines:
                return
            text = b"".join(lines).replace(b"click:", b"").replace(b"dense_feature:", b"").translate(colon)
            table = numpy.fromstring(text, sep=" ").reshape(len(lines), first_id + 2 * SLOTS)
            yield (table[:, 0].astype(numpy.float32), table[:, 1:first_id].astype(numpy.float32),
                   table[:, first_id + 1::2].astype(numpy.int64) % rows)


class Binary:
    """labels [n], dense [n, 13], ids [n, slots, ids a slot] counted from 0 below `vocabulary`."""

    def __init__(self, path):
        with open(path, "rb") as file:
            samples, slots, ids_a_slot, dense, self.vocabulary = (
                int(n) for n in numpy.fromfile(file, numpy.int64, 5))
            self.labels = numpy.fromfile(file, numpy.float32, samples)
            self.dense = numpy.fromfile(file, numpy.float32, samples * dense).reshape(samples, dense)
            self.ids = numpy.fromfile(file, numpy.int64, samples * slots * ids_a_slot).reshape(
                samples, slots, ids_a_slot)
