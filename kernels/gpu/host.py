"""Reading the host's results where they lie, in pinned memory, without a copy operation."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024  # numbers of a program


def add_from_host(out: Tensor, values: Tensor, rows: Tensor) -> None:
    """Add each of `values`, float32 [n, width] in the host's pinned memory, to a row of `out` on the GPU.

    Behind what is enqueued on the current stream. A copy would take its turn behind all copies under way.

    Args:
        out: float32 [any, width], contiguous, changed in place.
        values: contiguous.
        rows: int64 [n] on the GPU, which rows of `out`; all different.
    """
    if out.dtype != torch.float32 or values.dtype != torch.float32 or rows.dtype != torch.int64:
        raise ValueError(f"{values.dtype} cannot be added to {out.dtype} at {rows.dtype}")
    if out.shape[1] != values.shape[1] or rows.shape != values.shape[:1]:
        raise ValueError(f"{list(values.shape)} cannot be added to {list(rows.shape)} of {list(out.shape)}")
    if not (out.is_contiguous() and values.is_contiguous() and rows.is_contiguous()):
        raise ValueError("all must be contiguous")
    count, width = values.shape
    if count:
        _add[(count, triton.cdiv(width, _BLOCK))](out, values, rows, width, BLOCK=_BLOCK)


@triton.jit
def _add(out: tl.tensor, values: tl.tensor, rows: tl.tensor, width: tl.tensor, BLOCK: tl.constexpr) -> None:
    number = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = col < width
    at = out + tl.load(rows + number) * width + col
    total = tl.load(at, mask=inside, other=0.0) + tl.load(
        values + number * width + col, mask=inside, other=0.0
    )
    tl.store(at, total, mask=inside)
