"""The residual stream between two layers: add what the experts gave, and normalise.

RMSNorm (arXiv 1910.07467): x / sqrt(mean(x²) + eps) · weight, in float32.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.numbers import triton_format

_COLS = 128  # columns of x that a program of one warp collects


def collect_and_norm(
    x: Tensor,
    residents: Tensor,
    table: Tensor,
    streamed: Tensor,
    ids: Tensor,
    control: Tensor,
    host_out: Tensor,
    norm: Tensor,
    eps: float,
    normed: Tensor,
) -> None:
    """Add the previous layer's expert results to x, and write its RMSNorm to `normed`.

    Args:
        x: float32 [tokens, hidden], changed in place.
        residents: float32 [pairs, splits, hidden], parts of the results of resident experts; token b's k-th
            expert is pair b·top_k + k. Only pairs whose expert has a place in `table` are read.
        table: int32 [experts], the place of a resident expert or -1.
        streamed: as `residents`, for experts that were copied in.
        ids: int32 [tokens, top_k]; -1 for no expert.
        control: int32 [1 + experts or more]: first whether host_out counts, then for each expert -1 unless it
            was copied in.
        host_out: float32 [tokens, hidden], usually in pinned memory: what the CPU's experts gave.
        norm: float32 [hidden].
        eps: added to the mean square.
        normed: bf16 or float32 [tokens, hidden].
    """
    tokens, hidden = x.shape
    top_k = ids.shape[1]
    experts = table.shape[0]
    if len(control) < 1 + experts or control.dtype != torch.int32:
        raise ValueError(f"{control.dtype} {list(control.shape)} cannot tell about {experts} experts")
    for parts in (residents, streamed):
        if parts.shape[0] < tokens * top_k or parts.shape[2] != hidden or not parts.is_contiguous():
            raise ValueError(f"results of {tokens * top_k} pairs do not lie in {list(parts.shape)}")
    _collect[(tokens, triton.cdiv(hidden, _COLS))](
        x,
        residents,
        table,
        streamed,
        ids,
        control,
        host_out,
        hidden,
        TOP_K=top_k,
        RESIDENT_SPLITS=residents.shape[1],
        STREAMED_SPLITS=streamed.shape[1],
        COLS=_COLS,
        num_warps=1,
    )
    normalise(x, norm, eps, normed)


def normalise(x: Tensor, norm: Tensor, eps: float, normed: Tensor) -> None:
    """Write the RMSNorm of x, float32 [tokens, hidden], to `normed`, bf16 or float32 of the same size."""
    tokens, hidden = x.shape
    if normed.shape != x.shape or x.dtype != torch.float32 or norm.shape != (hidden,):
        raise ValueError(f"{x.dtype} {list(x.shape)} cannot be normalised to {list(normed.shape)}")
    block = triton.next_power_of_2(hidden)
    _normalise[(tokens,)](
        x,
        norm,
        normed,
        hidden,
        eps,
        BLOCK=block,
        FORMAT=triton_format(normed),
        num_warps=min(16, max(1, block // 256)),
    )


@triton.jit
def _collect(
    x: tl.tensor,
    residents: tl.tensor,
    table: tl.tensor,
    streamed: tl.tensor,
    ids: tl.tensor,
    control: tl.tensor,
    host_out: tl.tensor,
    hidden: tl.tensor,
    TOP_K: tl.constexpr,
    RESIDENT_SPLITS: tl.constexpr,
    STREAMED_SPLITS: tl.constexpr,
    COLS: tl.constexpr,
) -> None:
    """A block of columns of one token.

    Every part is loaded, and only then is looked which ones count: loads that wait for each other cost more
    than loads in vain, and `where` keeps out whatever lies in unused parts.
    """
    token = tl.program_id(0)
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = col < hidden
    total = tl.load(x + token * hidden + col, mask=inside, other=0.0)
    flag = tl.load(control, volatile=True)
    host = tl.load(host_out + token * hidden + col, mask=inside & (flag != 0), other=0.0, volatile=True)
    for k in tl.static_range(TOP_K):
        pair = token * TOP_K + k
        expert = tl.load(ids + pair)
        place = tl.load(table + expert, mask=expert >= 0, other=-1)
        marked = tl.load(control + 1 + expert, mask=expert >= 0, other=-1, volatile=True) != -1
        resident = tl.zeros((COLS,), tl.float32)
        start = residents + pair.to(tl.int64) * RESIDENT_SPLITS * hidden + col
        for split in tl.static_range(RESIDENT_SPLITS):
            resident += tl.load(start + split * hidden, mask=inside, other=0.0)
        copied = tl.zeros((COLS,), tl.float32)
        start = streamed + pair.to(tl.int64) * STREAMED_SPLITS * hidden + col
        for split in tl.static_range(STREAMED_SPLITS):
            copied += tl.load(start + split * hidden, mask=inside, other=0.0)
        total += tl.where(place >= 0, resident, tl.where(marked, copied, 0.0))
    tl.store(x + token * hidden + col, total + host, mask=inside)


@triton.jit
def _normalise(
    x: tl.tensor,
    norm: tl.tensor,
    normed: tl.tensor,
    hidden: tl.tensor,
    eps: tl.tensor,
    BLOCK: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """One token."""
    start = tl.program_id(0) * hidden
    col = tl.arange(0, BLOCK)
    inside = col < hidden
    values = tl.load(x + start + col, mask=inside, other=0.0)
    weight = tl.load(norm + col, mask=inside, other=0.0)
    mean = tl.sum(values * values, 0) / hidden
    scaled = values * (1.0 / tl.sqrt(mean + eps)) * weight
    tl.store(normed + start + col, scaled.to(FORMAT), mask=inside)
