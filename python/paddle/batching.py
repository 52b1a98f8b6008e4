"""Samples of a reader in batches."""
from collections.abc import Callable, Iterator
from typing import Any

Reader = Callable[[], Iterator[Any]]


def batch(reader: Reader, batch_size: int, drop_last: bool = False) -> Reader:
    """A reader of lists of `batch_size` samples; the last one may be shorter.

    >>> list(batch(lambda: iter(range(5)), 2)())
    [[0, 1], [2, 3], [4]]
    """
    if isinstance(batch_size, bool) or int(batch_size) != batch_size or batch_size < 1:
        raise ValueError(f"batch_size: {batch_size!r} is not a whole number above 0")

    def batches() -> Iterator[list[Any]]:
        taken = []
        for sample in reader():
            taken.append(sample)
            if len(taken) == batch_size:
                yield taken
                taken = []
        if taken and not drop_last:
            yield taken

    return batches
