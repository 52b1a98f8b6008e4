"""Batches parsed by the C++ readers: Criteo slot text and TSV, slot_reader, MultiSlot, .gz and .zst.

    data = Dataset("clicks/train", slots=26, dense_dim=13, batch_size=512)
    for batch in data:                       # one pass
        x = emb(batch.keys, batch.offsets)   # [samples * slots, dim], with include_last_offset=True

Batch k of a pass is the same for any number of readers. `regattarec.torch` need not be imported: arrays are NumPy's,
or tensors with `tensors=True` (the default where PyTorch was imported before).
"""
import os
import sys
import typing

from regattarec import _core, errors

__all__ = ["Batch", "Dataset", "generate"]


class Batch(typing.NamedTuple):
    """Bag i of `keys` is [offsets[i], offsets[i + 1]): sample by sample, in each slot by slot."""

    keys: typing.Any  # int64: the bit pattern of the id
    offsets: typing.Any  # int64, samples * slots + 1
    dense: typing.Any  # [samples, dense_dim]
    labels: typing.Any  # [samples], of several labels [samples, labels]
    weights: typing.Any  # [samples], or None
    values: typing.Any  # a weight of each key, or None


class Dataset:
    """Files as batches; every iteration is a pass over them.

    `files` is a path, a folder or a glob, or a list of these. `slots` is the number of sparse slots, which are then
    named "1", "2", …, or their names. With `index` and `count` only a worker's share of the files is read. `skip` are
    batches of the first pass that are left out: those that an earlier run has trained on.
    """

    def __init__(self, files, *, slots, dense_dim=0, labels=("click",), real_labels=(), format="", batch_size=512,
                 readers=1, shuffle=False, in_memory=False, seed=12345, index=0, count=1, split="contiguous",
                 weight_slot="", value_slot="", dense_slot="dense_feature", id_space="shared", pipe_command="",
                 skip=0, epoch=0, tensors=None):
        if split not in ("contiguous", "mod"):
            raise errors.InvalidArgumentError(f"split '{split}': there are contiguous and mod")
        if id_space not in ("shared", "slot"):
            raise errors.InvalidArgumentError(f"id_space '{id_space}': there are shared and slot")
        if shuffle and not in_memory:
            raise errors.InvalidArgumentError("shuffle=True needs in_memory=True: files are read in their order")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise errors.InvalidArgumentError(f"batch_size: {batch_size!r} is not a whole number above 0")
        if not isinstance(count, int) or not isinstance(index, int) or not 0 <= index < count:
            raise errors.InvalidArgumentError(f"index {index!r} of count {count!r}: an index is from 0 to count - 1")
        if format and format not in (formats := _core.formats()):
            raise errors.InvalidArgumentError(f"format '{format}': there are {', '.join(formats)}, and '' looks at the lines")
        if isinstance(slots, bool) or (isinstance(slots, int) and not 0 < slots <= 100_000):
            raise errors.InvalidArgumentError(f"slots: {slots!r} is neither a number from 1 to 100000 nor a list of names")
        if not isinstance(dense_dim, int) or dense_dim < 0:
            raise errors.InvalidArgumentError(f"dense_dim: {dense_dim!r} is not a whole number from 0 on")
        patterns = [files] if isinstance(files, (str, bytes)) or hasattr(files, "__fspath__") else list(files)
        found = [file for pattern in patterns for file in _core.expand_files(str(pattern))]
        mine = _core.split_files(found, index, count, split == "mod")
        names = [str(i + 1) for i in range(slots)] if isinstance(slots, int) else [str(slot) for slot in slots]
        self.count = count
        self.files, self.slots, self.batch_size, self.epoch = mine, names, batch_size, epoch
        self._tensors = "torch" in sys.modules if tensors is None else tensors
        self._skip = skip
        self._busy = False
        self._options = dict(
            files=mine, format=format, batch_size=batch_size, readers=readers, seed=seed, pipe_command=pipe_command,
            labels=[str(label) for label in labels], real_labels=[str(label) for label in real_labels],
            sparse_slots=names, dense_slot=dense_slot, dense_dim=dense_dim, weight_slot=weight_slot,
            value_slot=value_slot, in_memory=in_memory, shuffle=shuffle, slot_ids=id_space == "slot")
        self._dataset = None

    def __getstate__(self):
        """A copy in another process opens the files itself."""
        return self.__dict__ | {"_dataset": None, "_busy": False}

    @property
    def bad_lines(self):
        """Lines that could not be read, since the dataset was made."""
        return 0 if self._dataset is None else self._dataset.bad_lines

    def __iter__(self):
        if self._busy:
            raise errors.FailedPreconditionError("a pass over this dataset is under way: end it, or make another one")
        if self._dataset is None:
            self._dataset = _core.make_dataset(**self._options)
        if tensors := self._tensors:
            import torch  # noqa: F401
        skip, self._skip = self._skip, 0
        number, self.epoch = self.epoch, self.epoch + 1
        self._busy = True
        whole = False
        watch = _core.PassWatch(self._dataset)
        try:
            self._dataset.begin_pass(number, skip)
            while (arrays := _core.next_batch(self._dataset, tensors)) is not None:
                yield Batch._make(arrays)
            whole = True
        finally:
            self._busy = False
            watch.end()
            if whole:
                self._dataset.end_pass()
            else:  # the loop was left, or reading failed
                self._dataset.interrupt()
                try:
                    self._dataset.end_pass()
                except errors.Error:
                    pass

    def pass_from(self, number, skip):
        """Pass `number` without its first `skip` batches."""
        self.epoch, self._skip = number, skip
        return iter(self)

    def identity(self):
        """What decides which batch is batch k."""
        return {name: value for name, value in self._options.items() if name != "readers"}


def generate(out, *, samples=100_000, test_samples=0, files=1, test_files=1, format="slot_text", compress="none",
             threads=0, seed=1, slots=26, dense=13, ids=100, ids_per_slot=1, zipf=1.05, missing=0.0, click_rate=0.25,
             signal=1.4, dense_share=0.1, cross_share=0.03):
    """Writes click data with a known truth to `out`/train, `out`/test and `out`/ceiling.json, as `regatta data gen` does.

    `regatta data gen --help` explains the settings. Gives for train and test the samples, the clicks, and the AUC and log
    loss of the true probabilities: no model does better.
    """
    if compress not in ("none", "gz", "zst"):
        raise errors.InvalidArgumentError(f"compress '{compress}': there are none, gz and zst")
    return _core.generate(
        out=os.fspath(out), samples=samples, test_samples=test_samples, files=files, test_files=test_files, format=format,
        compress=compress, threads=threads or os.cpu_count(), seed=seed, slots=slots, dense=dense, ids=ids,
        ids_per_slot=ids_per_slot, zipf=float(zipf), missing=float(missing), click_rate=float(click_rate),
        signal=float(signal), dense_share=float(dense_share), cross_share=float(cross_share))
