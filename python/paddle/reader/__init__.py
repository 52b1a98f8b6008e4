"""Readers made of readers. A reader is a function that gives an iterator over samples.

    >>> twice = map_readers(lambda a, b: a + b, lambda: iter([1, 2]), lambda: iter([10, 20]))
    >>> list(twice())
    [11, 22]
"""
import itertools
import queue
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

from paddle._missing import refuse_missing
from paddle.batching import Reader

__all__ = ["map_readers", "shuffle", "chain", "compose", "buffered", "firstn", "cache", "ComposeNotAligned"]


class ComposeNotAligned(ValueError):
    """Readers that are composed have different numbers of samples."""


def map_readers(func: Callable[..., Any], *readers: Reader) -> Reader:
    """func(a sample of each reader)."""
    return lambda: map(func, *(reader() for reader in readers))


def shuffle(reader: Reader, buf_size: int) -> Reader:
    """The samples in another order, within stretches of `buf_size`. random.seed decides the order.

    >>> sorted(shuffle(lambda: iter(range(10)), 4)())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def shuffled() -> Iterator[Any]:
        samples = reader()
        while part := list(itertools.islice(samples, buf_size)):
            random.shuffle(part)
            yield from part

    return shuffled


def chain(*readers: Reader) -> Reader:
    """One reader after the other."""
    return lambda: itertools.chain.from_iterable(reader() for reader in readers)


def compose(*readers: Reader, check_alignment: bool = True) -> Reader:
    """A sample of each reader side by side, as one tuple.

    >>> list(compose(lambda: iter([(1, 2)]), lambda: iter([3]))())
    [(1, 2, 3)]
    """

    def flat(sample: Any) -> tuple[Any, ...]:
        return sample if isinstance(sample, tuple) else (sample,)

    def composed() -> Iterator[Any]:
        end = object()
        for samples in itertools.zip_longest(*(reader() for reader in readers), fillvalue=end):
            if any(sample is end for sample in samples):
                if check_alignment:
                    raise ComposeNotAligned("the composed readers have different numbers of samples")
                return
            yield sum(map(flat, samples), ())

    return composed


def buffered(reader: Reader, size: int) -> Reader:
    """Reads up to `size` samples ahead, in a thread. An error of the reader comes where its sample would."""

    def ahead() -> Iterator[Any]:
        waiting: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=size)
        gone = threading.Event()

        def put(item: tuple[str, Any]) -> None:
            while not gone.is_set():
                try:
                    return waiting.put(item, timeout=0.1)
                except queue.Full:
                    continue

        def fill() -> None:
            try:
                for sample in reader():
                    put(("sample", sample))
                    if gone.is_set():
                        return
                put(("end", None))
            except BaseException as error:  # the reader's; it is raised where the samples are used
                put(("error", error))

        threading.Thread(target=fill, daemon=True).start()
        try:
            while True:
                kind, item = waiting.get()
                if kind == "error":
                    raise item
                if kind == "end":
                    return
                yield item
        finally:
            gone.set()

    return ahead


def firstn(reader: Reader, n: int) -> Reader:
    """The first n samples."""
    return lambda: itertools.islice(reader(), n)


def cache(reader: Reader) -> Reader:
    """Keeps all samples in memory, and reads them once."""
    samples: list[Any] | None = None

    def cached() -> Iterator[Any]:
        nonlocal samples
        if samples is None:
            samples = list(reader())
        return iter(samples)

    return cached


__getattr__ = refuse_missing(__name__, globals())
