"""Matrix products with a model's dense weights for up to 16 tokens, bound by reading the weights.

A weight is plain [rows, cols], bf16 or float32, or an Int8Matrix of the same size. For one token a program
takes a few rows and all their columns, so that each thread has several independent loads of 16 bytes in
flight; for more, tiles of the weight meet all tokens at once in the tensor cores, so that the weight is still
read once. Sums are float32, in an order that does not depend on timing.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.formats import GROUP
from kernels.gpu.numbers import dot_format, triton_format
from kernels.quantised import Int8Matrix

Weight = Tensor | Int8Matrix

MOST_TOKENS = 16  # one tile of the tensor cores

# Rows and columns that a program holds at a time, and its warps.
_VECTOR_ROWS, _VECTOR_COLS, _VECTOR_WARPS = 4, 2048, 4
_TILE_ROWS, _TILE_COLS, _TILE_WARPS, _TILE_STAGES = 16, 256, 4, 4


def linear_small(x: Tensor, weight: Weight, out: Tensor, *, add: bool = False) -> None:
    """Write x W^T to `out`, or add it to what is there.

    Args:
        x: [tokens, cols], 1 to 16 tokens, contiguous; bf16 or float32. Products are made in this format.
        weight: [rows, cols].
        out: float32 [tokens, rows], contiguous.
        add: add to `out` instead of replacing it, as a residual connection wants.
    """
    tokens, cols = x.shape
    values, scales = _parts(weight)
    rows = values.shape[0]
    if not 1 <= tokens <= MOST_TOKENS:
        raise ValueError(f"1 to {MOST_TOKENS} tokens, not {tokens}")
    if values.shape[1] != cols or out.shape != (tokens, rows) or out.dtype != torch.float32:
        raise ValueError(
            f"{list(x.shape)} times {list(values.shape)} does not give {out.dtype} {list(out.shape)}"
        )
    quantised = isinstance(weight, Int8Matrix)
    if tokens == 1:
        block = min(_VECTOR_COLS, triton.next_power_of_2(max(cols, GROUP)))
        _vector[(triton.cdiv(rows, _VECTOR_ROWS),)](
            x,
            values,
            scales,
            out,
            rows,
            cols,
            ROWS=_VECTOR_ROWS,
            COLS=block,
            GROUP=GROUP,
            QUANTISED=quantised,
            EVEN=cols % block == 0,
            ADD=add,
            num_warps=_VECTOR_WARPS,
        )
        return
    block = min(_TILE_COLS, triton.next_power_of_2(max(cols, GROUP)))
    if x.dtype == torch.float32:
        block = min(block, 64)
    _tiles[(triton.cdiv(rows, _TILE_ROWS),)](
        x,
        values,
        scales,
        out,
        tokens,
        rows,
        cols,
        ROWS=_TILE_ROWS,
        COLS=block,
        TOKENS=MOST_TOKENS,
        GROUP=GROUP,
        QUANTISED=quantised,
        EVEN=cols % block == 0,
        ADD=add,
        FORMAT=dot_format(x),
        num_warps=_TILE_WARPS,
        num_stages=_TILE_STAGES,
    )


def dequantise(weight: Int8Matrix, out: Tensor, first: int = 0) -> None:
    """Write the rows of `weight` from `first` on to out, [count, cols], bf16 or float32: rounded once."""
    count, cols = out.shape
    if cols != weight.cols or not 0 <= first <= first + count <= weight.rows or not out.is_contiguous():
        raise ValueError(
            f"rows {first} to {first + count} of {[weight.rows, weight.cols]} do not fill {list(out.shape)}"
        )
    block = min(1024, triton.next_power_of_2(max(cols, GROUP)))
    _dequantise[(count, triton.cdiv(cols, block))](
        weight.values, weight.scales, out, first, cols, COLS=block, GROUP=GROUP, FORMAT=triton_format(out)
    )


def embed_rows(tokens: Tensor, weight: Weight, x: Tensor) -> None:
    """Write the rows of `tokens`, int64 [tokens], to x, float32 [tokens, cols]; zeros for a token below 0.

    `tokens` and `weight` may lie in pinned memory of the host.
    """
    values, scales = _parts(weight)
    count, cols = x.shape
    if len(tokens) != count or values.shape[1] != cols or x.dtype != torch.float32:
        raise ValueError(f"{len(tokens)} rows of {list(values.shape)} do not fill {x.dtype} {list(x.shape)}")
    block = min(1024, triton.next_power_of_2(max(cols, GROUP)))
    _embed[(count, triton.cdiv(cols, block))](
        tokens, values, scales, x, cols, COLS=block, GROUP=GROUP, QUANTISED=isinstance(weight, Int8Matrix)
    )


def _parts(weight: Weight) -> tuple[Tensor, Tensor]:
    """The values and the scales; a plain weight stands for both."""
    if isinstance(weight, Int8Matrix):
        return weight.values, weight.scales
    if not weight.is_contiguous():
        raise ValueError("the weight must be contiguous")
    return weight, weight


@triton.jit
def _groups(
    values: tl.tensor,
    scales: tl.tensor,
    row: tl.tensor,
    inside: tl.tensor,
    first: tl.tensor,
    cols: tl.tensor,
    COLS: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
) -> tl.tensor:
    """Float32 weights [rows, COLS / GROUP, GROUP] of 8 bits: the rows `row` (int64), columns from `first` on.

    Three dimensions, so that a group's scale is one value of its own and not 32 loads.
    """
    group = first // GROUP + tl.arange(0, COLS // GROUP)
    col = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    at = values + row[:, None, None] * cols + col[None, :, :]
    groups = (cols + GROUP - 1) // GROUP
    scale_at = scales + row[:, None] * groups + group[None, :]
    if EVEN:
        codes = tl.load(at, mask=inside[:, None, None], other=0, eviction_policy="evict_first")
        scale = tl.load(scale_at, mask=inside[:, None], other=0.0, eviction_policy="evict_first")
    else:
        here = inside[:, None, None] & (col < cols)[None, :, :]
        codes = tl.load(at, mask=here, other=0, eviction_policy="evict_first")
        known = inside[:, None] & (group < groups)[None, :]
        scale = tl.load(scale_at, mask=known, other=0.0, eviction_policy="evict_first")
    return codes.to(tl.float32) * scale.to(tl.float32)[:, :, None]


@triton.jit
def _plain(
    values: tl.tensor,
    row: tl.tensor,
    inside: tl.tensor,
    first: tl.tensor,
    cols: tl.tensor,
    COLS: tl.constexpr,
    EVEN: tl.constexpr,
) -> tl.tensor:
    """Float32 weights [rows, COLS] of a plain matrix, likewise."""
    col = first + tl.arange(0, COLS)
    at = values + row[:, None] * cols + col[None, :]
    if EVEN:
        weights = tl.load(at, mask=inside[:, None], other=0.0, eviction_policy="evict_first")
    else:
        here = inside[:, None] & (col < cols)[None, :]
        weights = tl.load(at, mask=here, other=0.0, eviction_policy="evict_first")
    return weights.to(tl.float32)


@triton.jit
def _weights(
    values: tl.tensor,
    scales: tl.tensor,
    row: tl.tensor,
    inside: tl.tensor,
    first: tl.tensor,
    cols: tl.tensor,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    GROUP: tl.constexpr,
    QUANTISED: tl.constexpr,
    EVEN: tl.constexpr,
) -> tl.tensor:
    """Float32 weights [ROWS, COLS] of either kind. Triton 3.6 cannot sum them: see `_vector`."""
    if QUANTISED:
        groups = _groups(values, scales, row, inside, first, cols, COLS, GROUP, EVEN)
        weights = tl.reshape(groups, (ROWS, COLS))
    else:
        weights = _plain(values, row, inside, first, cols, COLS, EVEN)
    return weights


@triton.jit
def _vector(
    x: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    GROUP: tl.constexpr,
    QUANTISED: tl.constexpr,
    EVEN: tl.constexpr,
    ADD: tl.constexpr,
) -> None:
    """One token: a program sums its rows over all columns, and across threads only once at the end.

    Groups stay a dimension of their own up to the sum. What was reshaped Triton 3.6 sums wrongly where the
    lanes that share a row are no neighbours, as with 4096 columns (its pull request 9219 mends that).
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    wide = row.to(tl.int64)
    if QUANTISED:
        grouped = tl.zeros((ROWS, COLS // GROUP, GROUP), tl.float32)
        place = tl.arange(0, COLS // GROUP)[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
        for first in range(0, cols, COLS):
            weights = _groups(values, scales, wide, inside, first, cols, COLS, GROUP, EVEN)
            if EVEN:
                inputs = tl.load(x + first + place)
            else:
                inputs = tl.load(x + first + place, mask=first + place < cols, other=0.0)
            grouped += weights * inputs.to(tl.float32)[None, :, :]
        result = tl.sum(tl.sum(grouped, 2), 1)
    else:
        total = tl.zeros((ROWS, COLS), tl.float32)
        for first in range(0, cols, COLS):
            weights = _plain(values, wide, inside, first, cols, COLS, EVEN)
            col = first + tl.arange(0, COLS)
            if EVEN:
                inputs = tl.load(x + col)
            else:
                inputs = tl.load(x + col, mask=col < cols, other=0.0)
            total += weights * inputs.to(tl.float32)[None, :]
        result = tl.sum(total, 1)
    if ADD:
        result += tl.load(out + row, mask=inside, other=0.0)
    tl.store(out + row, result, mask=inside)


@triton.jit
def _tiles(
    x: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    tokens: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    TOKENS: tl.constexpr,
    GROUP: tl.constexpr,
    QUANTISED: tl.constexpr,
    EVEN: tl.constexpr,
    ADD: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """Several tokens: a program's rows of the weight, tile by tile, with all of them."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    token = tl.arange(0, TOKENS)
    total = tl.zeros((ROWS, TOKENS), tl.float32)
    for first in range(0, cols, COLS):
        weights = _weights(
            values, scales, row.to(tl.int64), inside, first, cols, ROWS, COLS, GROUP, QUANTISED, EVEN
        )
        col = first + tl.arange(0, COLS)
        here = (token < tokens)[:, None]
        if not EVEN:
            here = here & (col < cols)[None, :]
        inputs = tl.load(x + token[:, None] * cols + col[None, :], mask=here, other=0.0)
        total = tl.dot(
            weights.to(FORMAT), tl.trans(inputs.to(tl.float32).to(FORMAT)), total, input_precision="ieee"
        )
    here = inside[:, None] & (token < tokens)[None, :]
    at = out + token[None, :] * rows + row[:, None]
    if ADD:
        total += tl.load(at, mask=here, other=0.0)
    tl.store(at, total, mask=here)


@triton.jit
def _dequantise(
    values: tl.tensor,
    scales: tl.tensor,
    out: tl.tensor,
    first: tl.tensor,
    cols: tl.tensor,
    COLS: tl.constexpr,
    GROUP: tl.constexpr,
    FORMAT: tl.constexpr,
) -> None:
    """A block of columns of one row."""
    place = tl.program_id(0).to(tl.int64)
    row = first + place + tl.zeros((1,), tl.int64)
    start = tl.program_id(1) * COLS
    col = start + tl.arange(0, COLS)
    weights = _weights(values, scales, row, row >= 0, start, cols, 1, COLS, GROUP, True, False)
    tl.store(out + place * cols + col, tl.reshape(weights, (COLS,)).to(FORMAT), mask=col < cols)


@triton.jit
def _embed(
    tokens: tl.tensor,
    values: tl.tensor,
    scales: tl.tensor,
    x: tl.tensor,
    cols: tl.tensor,
    COLS: tl.constexpr,
    GROUP: tl.constexpr,
    QUANTISED: tl.constexpr,
) -> None:
    """A block of columns of one token."""
    place = tl.program_id(0)
    row = tl.load(tokens + place) + tl.zeros((1,), tl.int64)
    start = tl.program_id(1) * COLS
    col = start + tl.arange(0, COLS)
    weights = _weights(values, scales, row, row >= 0, start, cols, 1, COLS, GROUP, QUANTISED, False)
    tl.store(x + place * cols + col, tl.reshape(weights, (COLS,)), mask=col < cols)
