"""Tensors as C++ takes them: of one type, on the CPU, in one piece. What is so already is not copied."""
import typing

import torch
from torch.utils.dlpack import to_dlpack

from regattarec import errors

__all__ = ["floats", "has_values", "integers", "view"]

view: typing.Callable[[torch.Tensor], typing.Any] = to_dlpack  # for one call of C++, which asks a tensor itself for it at length


def has_values(tensor: torch.Tensor, name: str) -> None:
    """Refuses a tensor whose memory is not its values, one after another."""
    if tensor.layout is not torch.strided:
        raise errors.InvalidArgumentError(f"{name} are a tensor of the layout {tensor.layout}; call its to_dense()")
    if tensor.is_meta:
        raise errors.InvalidArgumentError(f"{name} are on the device 'meta', where tensors have no values; make them on the CPU")


def floats(tensor: torch.Tensor, shape: int | tuple[int, ...]) -> torch.Tensor:
    """Its values as float32, in that shape."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype is not torch.float32 or not tensor.is_cpu:  # type: ignore[attr-defined]  # PyTorch 1.13's stub has none
        tensor = tensor.to("cpu", torch.float32)
    made: torch.Tensor = tensor.reshape(shape).contiguous()
    return made


def integers(tensor: torch.Tensor) -> torch.Tensor:
    """Its whole numbers as int64, one after another."""
    if tensor.dtype is not torch.int64 or not tensor.is_cpu:  # type: ignore[attr-defined]  # PyTorch 1.13's stub has none
        tensor = tensor.to("cpu", torch.int64)
    made: torch.Tensor = (tensor if tensor.dim() == 1 else tensor.reshape(-1)).contiguous()
    return made
