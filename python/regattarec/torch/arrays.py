"""Tensors as C++ takes them: of one type, on the CPU, in one piece. What is so already is not copied."""
import torch
from torch.utils.dlpack import to_dlpack as view  # for one call of C++, which asks a tensor itself for it at length

__all__ = ["floats", "integers", "view"]


def floats(tensor, shape):
    """Its values as float32, in that shape."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype is not torch.float32 or not tensor.is_cpu:
        tensor = tensor.to("cpu", torch.float32)
    return tensor.reshape(shape).contiguous()


def integers(tensor):
    """Its whole numbers as int64, one after another."""
    if tensor.dtype is not torch.int64 or not tensor.is_cpu:
        tensor = tensor.to("cpu", torch.int64)
    return (tensor if tensor.dim() == 1 else tensor.reshape(-1)).contiguous()
