"""Batches parsed by the C++ readers: Criteo slot text and TSV, slot_reader, MultiSlot, .gz and .zst.

    data = Dataset("clicks/train", slots=26, dense_dim=13, batch_size=512)
    for batch in data:                       # one pass
        x = emb(batch.keys, batch.offsets)   # [samples * slots, dim], with include_last_offset=True

Batch k of a pass is the same for any number of readers. `regattarec.torch` need not be imported: arrays are NumPy's,
or tensors with `tensors=True` (the default where PyTorch was imported before).
"""
import ctypes
import numbers
import os
import sys
import typing
import weakref
from collections.abc import Iterable, Iterator

from regattarec import _core, arguments, errors

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
    batches of the first pass that are left out: those that an earlier run has trained on. Bad lines are skipped and
    counted; more than `max_bad_lines` (None: 1% of the lines, at least 100) are an error. `pipe_command` is a program
    that turns a file on its stdin into MultiSlot lines.

    If PyTorch was imported before, it is an IterableDataset: `DataLoader(data, batch_size=None, num_workers=2)`. Each of
    the loader's processes reads its share of the files.
    """

    files: list[str]
    slots: list[str]
    batch_size: int
    count: int
    epoch: int

    def __new__(cls, *args: typing.Any, **kwargs: typing.Any) -> "Dataset":
        return object.__new__(_iterable_dataset() if cls is Dataset and "torch" in sys.modules else cls)

    def __init__(self, files: arguments.AnyPath | Iterable[arguments.AnyPath], *, slots: int | Iterable[str | int],
                 dense_dim: int = 0, labels: Iterable[str] = ("click",), real_labels: Iterable[str] = (),
                 format: str = "", batch_size: int = 512, readers: int = 1, shuffle: bool = False,
                 in_memory: bool = False, seed: int = 12345, index: int = 0, count: int = 1,
                 split: typing.Literal["contiguous", "mod"] = "contiguous", weight_slot: str = "", value_slot: str = "",
                 dense_slot: str = "dense_feature", id_space: typing.Literal["shared", "slot"] = "shared",
                 pipe_command: str = "", max_bad_lines: int | None = None, skip: int = 0, epoch: int = 0,
                 tensors: bool | None = None) -> None:
        arguments.choice("split", split, ("contiguous", "mod"))
        arguments.choice("id_space", id_space, ("shared", "slot"))
        in_memory, shuffle = arguments.flag("in_memory", in_memory), arguments.flag("shuffle", shuffle)
        if shuffle and not in_memory:
            raise errors.InvalidArgumentError("shuffle=True needs in_memory=True: files are read in their order")
        self.batch_size = arguments.whole("batch_size", batch_size, 1, 2**20)
        self.count = arguments.whole("count", count, 1, arguments.INT32)
        index = arguments.whole("index", index, 0, arguments.INT32)
        if index >= self.count:
            raise errors.InvalidArgumentError(f"index {index} of count {self.count}: an index is from 0 to count - 1")
        if arguments.text("format", format):
            arguments.choice("format", format, _core.formats(), ", and '' looks at the lines")
        self.slots = _slot_names(slots)
        self.epoch, self._skip = arguments.whole("epoch", epoch), arguments.whole("skip", skip)
        self._tensors = "torch" in sys.modules if tensors is None else arguments.flag("tensors", tensors)
        found = [file for pattern in arguments.paths("files", files) for file in _core.expand_files(pattern)]
        if not found:
            raise errors.InvalidArgumentError("files: the list is empty")
        self.files = _core.split_files(found, index, self.count, split == "mod")
        if not self.files:
            raise errors.InvalidArgumentError(
                f"worker {index} of {self.count} (index=, count=) gets none of the {_listed(found)}; use at most as many workers "
                "as files, or split the files into more of them, for instance with `split -n l/8`")
        self._options: dict[str, typing.Any] = dict(
            files=self.files, format=format, batch_size=self.batch_size,
            readers=arguments.whole("readers", readers, 1, 1024), seed=arguments.whole("seed", seed, 0, arguments.UINT64),
            pipe_command=arguments.text("pipe_command", pipe_command),
            labels=arguments.names("labels", labels, "['click']"),
            real_labels=arguments.names("real_labels", real_labels, "['rating']"),
            sparse_slots=self.slots, dense_slot=arguments.text("dense_slot", dense_slot),
            dense_dim=arguments.whole("dense_dim", dense_dim, 0, arguments.INT32),
            weight_slot=arguments.text("weight_slot", weight_slot), value_slot=arguments.text("value_slot", value_slot),
            in_memory=in_memory, shuffle=shuffle, slot_ids=id_space == "slot")
        if max_bad_lines is not None:
            self._options["max_bad_lines"] = arguments.whole("max_bad_lines", max_bad_lines, note=", nor None")
        self._dataset: _core.Dataset | None = None
        self._pass: _core.PassWatch | None = None  # that is under way

    def __getstate__(self) -> dict[str, typing.Any]:
        """A copy in another process opens the files itself."""
        return self.__dict__ | {"_dataset": None, "_pass": None}

    def _leave_to_parent(self) -> None:
        """In a forked process: the readers are threads of the parent, and nothing here may wait for them, the exit included."""
        for held in (self._dataset, self._pass):
            if held is not None:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
        self._dataset = self._pass = None

    @property
    def bad_lines(self) -> int:
        """Lines that could not be read, since the dataset was made."""
        return 0 if self._dataset is None else self._dataset.bad_lines

    def __iter__(self) -> Iterator[Batch]:
        if self._pass is not None:
            raise errors.FailedPreconditionError("a pass over this dataset is under way: end it, or make another one")
        if self._dataset is None:
            self._dataset = _core.make_dataset(**self._options | {"files": self._files_of_process()})
            _opened.add(self)
        dataset = self._dataset
        if tensors := self._tensors:
            import torch  # noqa: F401
        skip, self._skip = self._skip, 0
        number, self.epoch = self.epoch, self.epoch + 1
        whole = False
        watch = self._pass = _core.PassWatch(dataset)
        try:
            dataset.begin_pass(number, skip)
            while (arrays := _core.next_batch(dataset, tensors)) is not None:
                yield Batch._make(typing.cast(tuple[typing.Any, ...], arrays))
                if self._pass is not watch:
                    raise errors.FailedPreconditionError(
                        "this process was forked while the pass was under way: begin another pass over the dataset")
            whole = True
        finally:
            if self._pass is watch:
                self._pass = None
                watch.end()
                if whole:
                    dataset.end_pass()
                else:  # the loop was left, or reading failed
                    dataset.interrupt()
                    try:
                        dataset.end_pass()
                    except errors.Error:
                        pass

    def _files_of_process(self) -> list[str]:
        """All files, or the share of a DataLoader's process."""
        loading = sys.modules.get("torch.utils.data")
        info = None if loading is None else loading.get_worker_info()
        if info is None or info.num_workers == 1:
            return self.files
        if self._skip:
            raise errors.InvalidArgumentError("skip= goes with at most one process of a DataLoader (num_workers=1)")
        share = _core.split_files(self.files, info.id, info.num_workers, False)
        if not share:
            raise errors.InvalidArgumentError(
                f"process {info.id} of the DataLoader's {info.num_workers} gets none of the {_listed(self.files)}; "
                f"num_workers={len(self.files)} is the most")
        return share

    def pass_from(self, number: int, skip: int) -> Iterator[Batch]:
        """Pass `number` without its first `skip` batches."""
        self.epoch, self._skip = arguments.whole("number", number), arguments.whole("skip", skip)
        return iter(self)

    def identity(self) -> dict[str, typing.Any]:
        """What decides which batch is batch k."""
        return {name: value for name, value in self._options.items() if name not in ("readers", "max_bad_lines")}


def _listed(files: list[str]) -> str:
    more = f", and {len(files) - 5} more" if len(files) > 5 else ""
    return f"{len(files)} file{'s' if len(files) > 1 else ''}: {', '.join(files[:5])}{more}"


_made: type[Dataset] | None = None


def _iterable_dataset() -> type[Dataset]:
    """Dataset as a kind of PyTorch's IterableDataset."""
    global _made
    if _made is None:
        import torch.utils.data
        _made = type("TorchDataset", (Dataset, torch.utils.data.IterableDataset), {"__module__": __name__, "__doc__": Dataset.__doc__})
    return _made


if not typing.TYPE_CHECKING:  # which would take any name for one that is there
    def __getattr__(name: str) -> typing.Any:
        if name == "TorchDataset":  # a copy in another process is made of it
            return _iterable_dataset()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_opened: "weakref.WeakSet[Dataset]" = weakref.WeakSet()


def _leave_all_to_parent() -> None:
    for dataset in _opened:
        dataset._leave_to_parent()


os.register_at_fork(after_in_child=_leave_all_to_parent)


def _is_number(name: object) -> bool:
    return isinstance(name, numbers.Integral) and not isinstance(name, bool)


def _slot_names(slots: int | Iterable[str | int]) -> list[str]:
    if isinstance(slots, Iterable) and not isinstance(slots, (str, bytes)) and getattr(slots, "ndim", 1) == 1:
        names = list(slots)
        if names and all(isinstance(name, str) or _is_number(name) for name in names):
            return [arguments.text("slots", str(name)) for name in names]
    else:
        try:
            return [str(i + 1) for i in range(arguments.whole("slots", slots, 1, 100_000))]
        except errors.InvalidArgumentError:
            pass
    raise errors.InvalidArgumentError(
        f"slots: {arguments.shown(slots)} is neither a number from 1 to 100000 nor a list of names such as ['user', 'item']")


def generate(out: arguments.AnyPath, *, samples: int = 100_000, test_samples: int = 0, files: int = 1,
             test_files: int = 1, format: str = "slot_text", compress: typing.Literal["none", "gz", "zst"] = "none",
             threads: int = 0, seed: int = 1, slots: int = 26, dense: int = 13, ids: int = 100, ids_per_slot: int = 1,
             zipf: float = 1.05, missing: float = 0.0, click_rate: float = 0.25, signal: float = 1.4,
             dense_share: float = 0.1, cross_share: float = 0.03) -> dict[str, dict[str, typing.Any]]:
    """Writes click data with a known truth to `out`/train, `out`/test and `out`/ceiling.json, as `regatta data gen` does.

    `regatta data gen --help` explains the settings. Gives for train and test the samples, the clicks, and the AUC and log
    loss of the true probabilities: no model does better.

        >>> made = generate("clicks", samples=1000, test_samples=500, slots=4, dense=0, ids=50)
        >>> made["train"]["samples"], made["train"]["clicks"] > 200
        (1000, True)
        >>> [len(batch.labels) for batch in Dataset("clicks/train", slots=4, batch_size=400)]
        [400, 400, 200]
    """
    arguments.choice("compress", compress, ("none", "gz", "zst"))
    counts = dict(samples=samples, test_samples=test_samples, files=files, test_files=test_files, threads=threads, seed=seed,
                  slots=slots, dense=dense, ids=ids, ids_per_slot=ids_per_slot)
    shares = dict(zipf=zipf, missing=missing, click_rate=click_rate, signal=signal, dense_share=dense_share,
                  cross_share=cross_share)
    settings: dict[str, typing.Any] = {name: arguments.real(name, value) for name, value in shares.items()}
    for name, value in counts.items():  # C++ knows the bounds of each
        settings[name] = arguments.whole(name, value, 0, _MOST.get(name, arguments.INT32))
    return _core.generate(out=arguments.path("out", out), format=arguments.text("format", format), compress=compress,
                          **settings | {"threads": settings["threads"] or os.cpu_count()})


_MOST = {"samples": arguments.INT64, "test_samples": arguments.INT64, "seed": arguments.INT64}
