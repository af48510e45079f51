"""Torch's number formats as Triton's."""

from __future__ import annotations

import torch
import triton.language as tl
from torch import Tensor

_FORMATS = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16}


def triton_format(tensor: Tensor) -> tl.dtype:
    """The format of a tensor's numbers, float32 or bf16."""
    return _FORMATS[tensor.dtype]


def dot_format(tensor: Tensor) -> tl.dtype:
    """The format in which the tensor cores multiply numbers of that tensor.

    On the CPU, in Triton's interpreter, it is float32: that multiplies the bit patterns of bf16 as integers.
    The products are the same, as float32 holds those of two bf16 numbers exactly.
    """
    return tl.float32 if tensor.device.type == "cpu" else _FORMATS[tensor.dtype]
