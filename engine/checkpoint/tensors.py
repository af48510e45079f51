"""Checkpoint tensors as torch tensors."""

from __future__ import annotations

import torch

from engine.checkpoint.inspect import wrong_dtype
from engine.checkpoint.reader import Checkpoint

_TORCH = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}


def load_tensor(
    checkpoint: Checkpoint, name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    """Tensor `name` in CPU memory of its own, checked to have `shape`, as `dtype`.

    float32 takes any format that widens exactly; bfloat16 takes bfloat16 only, since rounding would change
    the model.

    Raises:
        CheckpointError: the tensor is missing, unreadable, or in another shape or format.
    """
    info = checkpoint.info(name, shape)
    stored = _TORCH.get(info.dtype)
    if stored is None or (dtype is not torch.float32 and stored is not dtype):
        raise wrong_dtype(info)
    tensor = torch.empty(shape, dtype=stored)
    checkpoint.read_into(info, writable_bytes(tensor))
    return tensor.to(dtype)


def writable_bytes(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous CPU tensor, to read a file into."""
    return tensor.view(torch.uint8).view(-1).numpy().data
