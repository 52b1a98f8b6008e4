"""Trees of tensors as bytes, for saves: a JSON header, then the tensors' memory. Nothing is unpickled on reading.

    >>> import torch
    >>> load(dump({"w": torch.ones(2), "step": 3, "betas": (0.9, 0.99)}))
    {'w': tensor([1., 1.]), 'step': 3, 'betas': (0.9, 0.99)}
"""
import json
import math
import struct
import typing

import torch

from regattarec import errors

_TYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.bool)}


def dump(tree: typing.Any) -> bytes:
    """Takes dicts, lists, tuples, numbers, strings, None and tensors within each other."""
    memory: list[bytes] = []

    def plain(value: typing.Any, where: str) -> typing.Any:
        if isinstance(value, torch.Tensor):
            tensor = value.detach().to("cpu").contiguous()
            name = str(tensor.dtype).removeprefix("torch.")
            if name not in _TYPES:
                raise errors.InvalidArgumentError(f"{where}: a tensor of {name} cannot be saved")
            memory.append(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
            return {"tensor": [name, list(tensor.shape)]}
        if isinstance(value, dict):
            return {"dict": [[plain(k, where), plain(v, f"{where}.{k}")] for k, v in value.items()]}
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [plain(v, f"{where}[{i}]") for i, v in enumerate(value)]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value
        raise errors.InvalidArgumentError(f"{where}: a {type(value).__name__} cannot be saved; take it out of the state")

    header = json.dumps(plain(tree, "state")).encode()
    return b"".join([struct.pack("<Q", len(header)), header, *memory])


def load(data: bytes) -> typing.Any:
    """What dump took, with tensors on the CPU. DataLossError if the bytes are no such tree."""
    try:
        (length,) = struct.unpack_from("<Q", data)
        at = 8 + length

        def tensor(name: str, shape: list[int]) -> torch.Tensor:
            nonlocal at
            dtype, count = _TYPES[name], math.prod(shape)
            size = count * torch.empty(0, dtype=dtype).element_size()
            if at + size > len(data):
                raise ValueError("the bytes of a tensor are missing")
            made = torch.frombuffer(bytearray(data[at:at + size]), dtype=dtype) if size else torch.empty(0, dtype=dtype)
            at += size
            return torch.reshape(made, shape)

        def tree(value: typing.Any) -> typing.Any:
            if not isinstance(value, dict):
                return value
            ((kind, content),) = value.items()
            if kind == "tensor":
                return tensor(*content)
            if kind == "dict":
                return {tree(k): tree(v) for k, v in content}
            if kind in ("list", "tuple"):
                made = [tree(v) for v in content]
                return tuple(made) if kind == "tuple" else made
            if kind == "float":
                return float(content)
            raise ValueError(f"there is no '{kind}'")

        made = tree(json.loads(data[8:8 + length]))
        if at != len(data):
            raise ValueError("there are bytes behind the last tensor")
        return made
    except (ValueError, KeyError, TypeError, struct.error, RecursionError, RuntimeError) as error:
        raise errors.DataLossError(f"the saved state is damaged: {error}") from error
