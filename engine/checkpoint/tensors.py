"""Checkpoint tensors as torch tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from engine.checkpoint.inspect import wrong_dtype
from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.safetensors import TensorInfo
from engine.errors import CheckpointError

_TORCH = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}


def load_tensor(
    checkpoint: Checkpoint, name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    """Tensor `name` in CPU memory of its own, checked to have `shape` and finite values, as `dtype`.

    float32 takes any format that widens exactly; bfloat16 takes bfloat16 only, since rounding would change
    the model.

    Raises:
        CheckpointError: the tensor is missing, unreadable, in another shape or format, or not finite.
    """
    info = checkpoint.info(name, shape)
    stored = _TORCH.get(info.dtype)
    if stored is None or (dtype is not torch.float32 and stored is not dtype):
        raise wrong_dtype(info)
    tensor = torch.empty(shape, dtype=stored)
    checkpoint.read_into(info, writable_bytes(tensor))
    check_finite(info, tensor)
    return tensor.to(dtype)


def check_finite(info: TensorInfo, tensor: torch.Tensor) -> None:
    """Raise CheckpointError if a value is NaN or infinite: such a model would answer with nonsense.

    The extremes are NaN where any value is, so one pass without temporary tensors is enough.
    """
    if tensor.numel() == 0 or all(math.isfinite(extreme) for extreme in torch.aminmax(tensor)):
        return
    first = (~tensor.isfinite()).nonzero()[0].tolist()
    raise not_finite(info, first)


def not_finite(info: TensorInfo, position: Sequence[int]) -> CheckpointError:
    """The refusal of a tensor with NaN or infinity at `position`."""
    return CheckpointError(
        "The model's weights are damaged.",
        why=f"{info.name} in {info.file.name} is not a finite number at position {list(position)}.",
        action="Download that file again; if the model is a conversion or a fine-tune, make it again.",
    )


def writable_bytes(tensor: torch.Tensor) -> memoryview:
    """The bytes of a contiguous CPU tensor, to read a file into."""
    return tensor.view(torch.uint8).view(-1).numpy().data
