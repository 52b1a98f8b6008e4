"""Checks of what callers give: a value of the right type, or an error that names the argument and what it takes.

NumPy's numbers are as good as Python's. True and False are no numbers.

    >>> whole("batch_size", 512, 1)
    512
    >>> whole("batch_size", 0.5, 1)
    Traceback (most recent call last):
    regattarec.errors.InvalidArgumentError: batch_size: 0.5 is not a whole number above 0
"""
import math
import numbers
import operator
import os
import typing
from collections.abc import Iterable, Sequence

from regattarec import errors

INT32 = 2**31 - 1
INT64 = 2**63 - 1
UINT32 = 2**32 - 1
UINT64 = 2**64 - 1

AnyPath = typing.Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def shown(value: object) -> str:
    """As messages have it: not longer than a line."""
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else f"a {type(value).__name__}"


def _is_bool(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # NumPy has one too


def whole(name: str, value: typing.Any, least: int = 0, most: int = INT64, note: str = "") -> int:
    """A whole number from `least` to `most`."""
    try:
        number = None if _is_bool(value) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):  # of what is no number, and of tensors with many or with none
        number = None
    if number is None or not least <= number <= most:
        bounds = " above 0" if least == 1 else f" from {least} on" if least > -INT32 else ""
        if number is not None and number > most:
            bounds = f" from {least} to {most}"
        raise errors.InvalidArgumentError(f"{name}: {shown(value)} is not a whole number{bounds}{note}")
    return number


def real(name: str, value: typing.Any, least: float = -math.inf) -> float:
    """A finite number from `least` on."""
    try:
        number = float(value) if isinstance(value, numbers.Real) and not _is_bool(value) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < least:
        bounds = "" if least == -math.inf else f" from {least:g} on"
        raise errors.InvalidArgumentError(f"{name}: {shown(value)} is not a finite number{bounds}")
    return number


def flag(name: str, value: typing.Any) -> bool:
    """True or False; 1 and 0 are as good."""
    if not _is_bool(value) and not (isinstance(value, int) and value in (0, 1)):
        raise errors.InvalidArgumentError(f"{name}: {shown(value)} is neither True nor False")
    return bool(value)


def choice(name: str, value: typing.Any, known: Sequence[str], note: str = "") -> str:
    """One of the names that are known."""
    if not isinstance(value, str) or value not in known:
        there = " and ".join(filter(None, (", ".join(known[:-1]), known[-1])))
        raise errors.InvalidArgumentError(f"{name} {shown(value)}: there {'are' if len(known) > 1 else 'is'} {there}{note}")
    return str(value)


def text(name: str, value: typing.Any) -> str:
    """A string that C++ can take."""
    if not isinstance(value, str):
        raise errors.InvalidArgumentError(f"{name}: {shown(value)} is no string")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise errors.InvalidArgumentError(f"{name}: {ascii(value)} is no text in UTF-8: {error.reason}") from error
    if "\0" in value:
        raise errors.InvalidArgumentError(f"{name}: {ascii(value)} holds a zero byte")
    return str(value)


def names(name: str, values: typing.Any, example: str) -> list[str]:
    """A list of names. A string alone is a mistake: it would be a list of letters."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise errors.InvalidArgumentError(f"{name}: {shown(values)} is no list such as {example}")
    return [text(name, value) for value in values]


def path(name: str, value: typing.Any) -> str:
    """A path as a string."""
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: {shown(value)} (of type {type(value).__name__}) is no path; give a string or a pathlib.Path")
    found = text(name, os.fsdecode(value))
    if not found:
        raise errors.InvalidArgumentError(f"{name} is an empty path")
    return found


def paths(name: str, values: typing.Any) -> list[str]:
    """A path, or a list of paths."""
    if isinstance(values, (str, bytes, os.PathLike)):
        return [path(name, values)]
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}: {shown(values)} (of type {type(values).__name__}) is neither a path nor a list of paths")
    return [path(name, value) for value in values]
