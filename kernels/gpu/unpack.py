"""From packed experts to plain matrices on a GPU, for products with many tokens; as `kernels.unpack` does."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.numbers import triton_format
from kernels.gpu.words import (
    BF16,
    BLOCK_GROUPS,
    GROUP_BYTES,
    INT4,
    MAGIC,
    PANEL_ROWS,
    SIDE_BYTES,
    TILE_COLS,
    TILE_ROWS,
    as_words,
    group,
    pair,
    unscale_even,
    unscale_odd,
)
from kernels.layout import describe
from kernels.shape import ExpertShape

_TILES = 8  # side by side along a row of the result: 512 bytes of bf16
_WARPS = 4


def unpack(block: Tensor, shape: ExpertShape, panels: tuple[int, int], gate_up: Tensor, down: Tensor) -> None:
    """Write panels `panels[0]` to `panels[1]` - 1 of a packed expert as plain matrices.

    Args:
        block: uint8 [nbytes], aligned to 16 bytes.
        shape: the expert's.
        panels: first and end; n is the number of their neurons.
        gate_up: [2 n, hidden], bf16 or float32: rows of w1, then of w3.
        down: [hidden, n], of the same format: columns of w2.

    The values are those of `kernels.unpack.unpack_expert`, in float32 without its last rounding.
    """
    first, end = panels
    if not 0 <= first <= end <= shape.panels:
        raise ValueError(f"an expert of {shape.panels} panels has no panels {first} to {end - 1}")
    if (
        block.dtype != torch.uint8
        or block.shape != (shape.nbytes,)
        or not block.is_contiguous()
        or block.data_ptr() % 16
    ):
        raise ValueError(
            f"a packed expert is contiguous uint8 [{shape.nbytes}] aligned to 16 bytes, not {describe(block)}"
        )
    neurons = max(0, min(end * PANEL_ROWS.value, shape.intermediate) - first * PANEL_ROWS.value)
    for name, out, size in (
        ("w1 and w3", gate_up, (2 * neurons, shape.hidden)),
        ("w2", down, (shape.hidden, neurons)),
    ):
        if (
            out.dtype not in (torch.bfloat16, torch.float32)
            or out.dtype != down.dtype
            or out.shape != size
            or not out.is_contiguous()
        ):
            raise ValueError(
                f"{name} must be contiguous bf16 or float32 {list(size)}, both alike, not {describe(out)}"
            )
    if not neurons:
        return
    common = {
        "HIDDEN": shape.hidden,
        "PANELS": shape.panels,
        "FORMAT": shape.format.number,
        "NUMBERS": triton_format(down),
        "TILES": _TILES,
        "num_warps": _WARPS,
    }
    _gate_up[(triton.cdiv(shape.k_tiles, _TILES), 4 * (end - first))](
        block, gate_up, MAGIC, first, neurons, **common
    )
    _down[(triton.cdiv(end - first, _TILES), 2 * shape.k_tiles)](
        block, down, MAGIC, first, end, neurons, **common
    )


@triton.jit(do_not_specialize=["magic", "first"])
def _gate_up(
    block: tl.tensor,
    out: tl.tensor,
    magic: tl.tensor,
    first: tl.tensor,
    neurons: tl.tensor,
    HIDDEN: tl.constexpr,
    PANELS: tl.constexpr,
    FORMAT: tl.constexpr,
    NUMBERS: tl.constexpr,
    TILES: tl.constexpr,
) -> None:
    """16 rows × 32 · TILES columns of w1 or w3. Grid: (column blocks, row tiles of the panels)."""
    K: tl.constexpr = (HIDDEN + TILE_COLS - 1) // TILE_COLS
    ROW_WORDS: tl.constexpr = 16 >> FORMAT
    TILE_BYTES: tl.constexpr = 1024 >> FORMAT
    PARAMETER_BYTES: tl.constexpr = GROUP_BYTES if FORMAT != BF16 else 0
    PANEL_BYTES: tl.constexpr = 6 * K * (TILE_BYTES + PARAMETER_BYTES)
    COLUMNS: tl.constexpr = (K + BLOCK_GROUPS - 1) // BLOCK_GROUPS

    number = tl.program_id(1)
    panel = first + number // 4
    row_tile = number % 4  # two of w1, two of w3
    row = tl.arange(0, TILE_ROWS)
    word = tl.program_id(0) * (TILES * ROW_WORDS) + tl.arange(0, TILES * ROW_WORDS)
    tile = word // ROW_WORDS
    inside = (tile < K)[:, None]
    start = block + panel.to(tl.int64) * PANEL_BYTES
    words = as_words(start + row_tile * K * TILE_BYTES) + word[:, None] * TILE_ROWS + row[None, :]
    parameters = start + 6 * K * TILE_BYTES + row_tile * K * GROUP_BYTES
    entry = (panel * 4 + row_tile) * COLUMNS + tile // BLOCK_GROUPS
    values = _plain(
        words,
        parameters + tile[:, None] * GROUP_BYTES,
        block + PANELS * PANEL_BYTES + entry[:, None] * SIDE_BYTES,
        row,
        inside,
        magic,
        FORMAT,
        NUMBERS,
    )
    neuron = (panel - first) * PANEL_ROWS + row_tile % 2 * TILE_ROWS + row
    to = (row_tile // 2 * neurons + neuron).to(tl.int64) * HIDDEN
    col = tl.program_id(0) * (TILES * TILE_COLS) + tl.arange(0, TILES * TILE_COLS)
    tl.store(
        out + to[:, None] + col[None, :],
        values,
        mask=(neuron < neurons)[:, None] & (col < HIDDEN)[None, :],
    )


@triton.jit(do_not_specialize=["magic", "first", "end"])
def _down(
    block: tl.tensor,
    out: tl.tensor,
    magic: tl.tensor,
    first: tl.tensor,
    end: tl.tensor,
    neurons: tl.tensor,
    HIDDEN: tl.constexpr,
    PANELS: tl.constexpr,
    FORMAT: tl.constexpr,
    NUMBERS: tl.constexpr,
    TILES: tl.constexpr,
) -> None:
    """16 rows × TILES panels of w2. Grid: (blocks of panels, row tiles)."""
    K: tl.constexpr = (HIDDEN + TILE_COLS - 1) // TILE_COLS
    ROW_WORDS: tl.constexpr = 16 >> FORMAT
    TILE_BYTES: tl.constexpr = 1024 >> FORMAT
    PARAMETER_BYTES: tl.constexpr = GROUP_BYTES if FORMAT != BF16 else 0
    PANEL_BYTES: tl.constexpr = 6 * K * (TILE_BYTES + PARAMETER_BYTES)
    COLUMNS: tl.constexpr = (K + BLOCK_GROUPS - 1) // BLOCK_GROUPS

    row_tile = tl.program_id(1)
    row = tl.arange(0, TILE_ROWS)
    word = tl.arange(0, TILES * ROW_WORDS)
    panel = first + tl.program_id(0) * TILES + word // ROW_WORDS
    inside = (panel < end)[:, None]
    start = block + panel.to(tl.int64)[:, None] * PANEL_BYTES
    at = (word % ROW_WORDS)[:, None] * TILE_ROWS + row[None, :]
    entry = PANELS * 4 * COLUMNS + panel // BLOCK_GROUPS * (2 * K) + row_tile
    values = _plain(
        as_words(start + (4 * K + row_tile) * TILE_BYTES) + at,
        start + 6 * K * TILE_BYTES + (4 * K + row_tile) * GROUP_BYTES,
        block + PANELS * PANEL_BYTES + entry[:, None] * SIDE_BYTES,
        row,
        inside,
        magic,
        FORMAT,
        NUMBERS,
    )
    to = (row_tile * TILE_ROWS + row).to(tl.int64)
    col = tl.program_id(0) * (TILES * TILE_COLS) + tl.arange(0, TILES * TILE_COLS)
    tl.store(
        out + to[:, None] * neurons + col[None, :],
        values,
        mask=(to < HIDDEN)[:, None] & (col < neurons)[None, :],
    )


@triton.jit
def _plain(
    words: tl.tensor,
    parameters: tl.tensor,
    side: tl.tensor,
    row: tl.tensor,
    inside: tl.tensor,
    magic: tl.tensor,
    FORMAT: tl.constexpr,
    NUMBERS: tl.constexpr,
) -> tl.tensor:
    """Numbers [16 rows, inputs] of words [words, 16 rows], given by where they lie.

    `parameters` and `side`: [words, 1], the addresses of each word's groups and of their entries in the side
    table.
    """
    ROW_INPUTS: tl.constexpr = 2 << FORMAT
    packed = tl.load(words, mask=inside, other=0)
    step, offset = 1.0, 0.0
    if FORMAT != BF16:
        step, offset = group(parameters, side, row[None, :], inside, FORMAT)
    # A join's new dimension is the last one: the last join must part what differs in an input's lowest bit.
    if ROW_INPUTS == 2:
        even, odd = _number(packed, magic, step, offset, 0, FORMAT, NUMBERS)
    elif ROW_INPUTS == 4:
        even0, odd0 = _number(packed, magic, step, offset, 0, FORMAT, NUMBERS)
        even1, odd1 = _number(packed, magic, step, offset, 1, FORMAT, NUMBERS)
        even, odd = tl.join(even0, even1), tl.join(odd0, odd1)
    else:
        even0, odd0 = _number(packed, magic, step, offset, 0, FORMAT, NUMBERS)
        even1, odd1 = _number(packed, magic, step, offset, 1, FORMAT, NUMBERS)
        even2, odd2 = _number(packed, magic, step, offset, 2, FORMAT, NUMBERS)
        even3, odd3 = _number(packed, magic, step, offset, 3, FORMAT, NUMBERS)
        even = tl.join(tl.join(even0, even2), tl.join(even1, even3))
        odd = tl.join(tl.join(odd0, odd2), tl.join(odd1, odd3))
    inputs = tl.join(even, odd).reshape([packed.shape[0], TILE_ROWS, ROW_INPUTS])
    return inputs.permute(1, 0, 2).reshape([TILE_ROWS, packed.shape[0] * ROW_INPUTS])


@triton.jit
def _number(
    words: tl.tensor,
    magic: tl.tensor,
    step: tl.tensor,
    offset: tl.tensor,
    STEP: tl.constexpr,
    FORMAT: tl.constexpr,
    NUMBERS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """Inputs 2 · STEP and 2 · STEP + 1 of each word. Products of values and parameters are exact."""
    even, odd = pair(words, STEP, magic, FORMAT)
    if FORMAT != BF16:
        even = unscale_even(even, STEP, FORMAT) * step
        odd = unscale_odd(odd, STEP, FORMAT) * step
        if FORMAT == INT4:
            even = even - offset
            odd = odd - offset
    return even.to(NUMBERS), odd.to(NUMBERS)
