"""The housing values of Boston's suburbs (UCI, 1978): 13 features, normalised, and a price in thousands of dollars.

The data lies beside this file. 404 samples are for training and 102 for tests.

    >>> features, price = next(train()())
    >>> features.shape, price.tolist()
    ((13,), [24.0])
"""
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy

from paddle.batching import Reader

__all__ = ["train", "test", "feature_names"]

feature_names = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]
_TRAINING = 404
_data: Any = None


def _samples() -> Any:
    """Every feature as (x - mean) / (max - min) over all samples."""
    global _data
    if _data is None:
        raw = numpy.loadtxt(pathlib.Path(__file__).parent / "housing.data")
        features = raw[:, :-1]
        low, high, mean = features.min(axis=0), features.max(axis=0), features.mean(axis=0)
        raw[:, :-1] = (features - mean) / (high - low)
        _data = raw
    return _data


def _reader(begin: int, end: int | None) -> Reader:
    def samples() -> Iterator[Any]:
        for row in _samples()[begin:end]:
            yield row[:-1], row[-1:]

    return samples


def train() -> Reader:
    """A reader of the first 404 samples."""
    return _reader(0, _TRAINING)


def test() -> Reader:
    """A reader of the other 102."""
    return _reader(_TRAINING, None)
