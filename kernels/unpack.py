"""From packed experts (`kernels.layout`) back to plain matrices, with torch, on the CPU or a GPU.

Every matrix of an expert is a grid of tiles [rows / 32, 2, tiles along the reduction]: all views here have
these three dimensions first, and after them those of a tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.formats import BLOCK_GROUPS, WeightFormat
from kernels.layout import describe
from kernels.quantised import dequantise_int4, dequantise_int8
from kernels.shape import PANEL_ROWS, TILE_COLS, TILE_ROWS, ExpertShape

# Weights that are dequantised at once: their temporaries take some 150 MB beside the expert.
_AT_ONCE = 1 << 24


class _Grid(NamedTuple):
    """The bytes of one matrix, as views of the block."""

    rows: int
    cols: int
    tiles: Tensor  # uint8 [G, 2, C, bytes of a tile]
    groups: Tensor  # uint8 [G, 2, C, 32] or, in bf16, [G, 2, C, 0]
    side: Tensor  # uint8 [G, 2, ceil(C / 8), 64] or [..., 0]


def unpack_expert(
    block: Tensor, shape: ExpertShape, panels: tuple[int, int] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return bf16 (w1, w3, w2) of a packed expert, uint8 [nbytes], on the block's device (CPU or CUDA).

    With `panels`, first and end, only their neurons: rows of w1 and w3, columns of w2. Weights of 8 and 4
    bits are dequantised in float32 and rounded to bf16. Raises ValueError for panels that are not there.
    """
    gate, up, down = _grids(block, shape)
    if panels is None:
        panels = 0, shape.panels
    first, end = panels
    if not 0 <= first <= end <= shape.panels:
        raise ValueError(f"an expert of {shape.panels} panels has no panels {first} to {end - 1}")
    neurons = slice(first * PANEL_ROWS, min(end * PANEL_ROWS, shape.intermediate))
    count = neurons.stop - neurons.start
    if first == end:
        rows, columns = (
            block.new_empty(0, shape.hidden).bfloat16(),
            block.new_empty(shape.hidden, 0).bfloat16(),
        )
        return rows, rows.clone(), columns
    w1, w3 = (_to_bf16(_some_rows(grid, first, end, count), shape.format) for grid in (gate, up))
    # Side tables of w2 have an entry for several panels: begin where an entry does.
    start = first // BLOCK_GROUPS * BLOCK_GROUPS
    skipped = (first - start) * PANEL_ROWS
    w2 = _to_bf16(_some_columns(down, start, end, skipped + count), shape.format)
    return w1, w3, w2[:, skipped:].contiguous()


def _grids(block: Tensor, shape: ExpertShape) -> Iterator[_Grid]:
    """The bytes of w1, w3 and w2."""
    if block.dtype != torch.uint8 or block.shape != (shape.nbytes,) or not block.is_contiguous():
        raise ValueError(f"a packed expert is contiguous uint8 [{shape.nbytes}], not {describe(block)}")
    k, panels, format = shape.k_tiles, shape.panels, shape.format
    all_panels, side = block.tensor_split((panels * shape.panel_nbytes,))
    values, groups = all_panels.view(panels, shape.panel_nbytes).tensor_split(
        (6 * k * format.tile_nbytes,), 1
    )
    values = values.view(panels, 6 * k, format.tile_nbytes)
    groups = groups.view(panels, 6 * k, format.group_nbytes)
    columns = -(-k // BLOCK_GROUPS)
    gate_up_side, down_side = side.tensor_split((panels * 4 * columns * format.side_nbytes,))
    gate_up_side = gate_up_side.view(panels, 4, columns, format.side_nbytes)
    down_side = down_side.view(-(-panels // BLOCK_GROUPS), k, 2, format.side_nbytes)
    for first in (0, 2):
        yield _Grid(
            shape.intermediate,
            shape.hidden,
            values[:, first * k : (first + 2) * k].view(panels, 2, k, -1),
            groups[:, first * k : (first + 2) * k].view(panels, 2, k, format.group_nbytes),
            gate_up_side[:, first : first + 2],
        )
    yield _Grid(  # from [panel, rows / 32, 2, bytes]
        shape.hidden,
        shape.intermediate,
        values[:, 4 * k :].view(panels, k, 2, -1).permute(1, 2, 0, 3),
        groups[:, 4 * k :].view(panels, k, 2, format.group_nbytes).permute(1, 2, 0, 3),
        down_side.permute(1, 2, 0, 3),
    )


def _some_rows(grid: _Grid, first: int, end: int, rows: int) -> _Grid:
    """Panels of w1 or w3."""
    return _Grid(rows, grid.cols, *(view[first:end] for view in (grid.tiles, grid.groups, grid.side)))


def _some_columns(grid: _Grid, first: int, end: int, cols: int) -> _Grid:
    """Panels of w2; `first` is the first of a block of groups."""
    side = grid.side[:, :, first // BLOCK_GROUPS : -(-end // BLOCK_GROUPS)]
    return _Grid(grid.rows, cols, grid.tiles[:, :, first:end], grid.groups[:, :, first:end], side)


def _to_bf16(grid: _Grid, format: WeightFormat) -> Tensor:
    if format is WeightFormat.BF16:
        pairs = _parts(grid.tiles.view(torch.bfloat16), 2)
        return _plain(pairs, grid.rows, grid.cols)
    out = torch.empty(grid.rows, grid.cols, dtype=torch.bfloat16, device=grid.tiles.device)
    step = max(1, _AT_ONCE // (PANEL_ROWS * grid.cols))
    for first in range(0, grid.tiles.shape[0], step):
        rows = slice(first * PANEL_ROWS, (first + step) * PANEL_ROWS)
        part = _Grid(
            out[rows].shape[0],
            grid.cols,
            *(view[first : first + step] for view in (grid.tiles, grid.groups, grid.side)),
        )
        if format is WeightFormat.INT8:
            out[rows] = dequantise_int8(*_int8_tensors(part))
        else:
            out[rows] = dequantise_int4(*_int4_tensors(part))
    return out


def _int8_tensors(grid: _Grid) -> tuple[Tensor, Tensor]:
    """The tensors of an Int8Matrix."""
    quads = _parts(grid.tiles.view(torch.int8), 4)
    return _plain(quads, grid.rows, grid.cols), _per_row(grid.groups.view(torch.float16), grid.rows)


def _int4_tensors(grid: _Grid) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The tensors of an Int4Matrix."""
    # Four inputs 4t to 4t + 3 of an octet are in byte t of its word's lower half (even ones) and upper half.
    halves = grid.tiles.view(*grid.tiles.shape[:3], TILE_COLS // 8, TILE_ROWS, 2, 2)
    even, odd = halves[..., 0, :], halves[..., 1, :]
    octets = torch.stack((even & 15, odd & 15, even >> 4, odd >> 4), -1)
    scales, minimums = grid.groups.tensor_split(2, 3)
    block_scales, block_minimums = grid.side.view(torch.float16).tensor_split(2, 3)
    return (
        _plain(octets.flatten(5), grid.rows, grid.cols),
        _per_row(scales, grid.rows),
        _per_row(minimums, grid.rows),
        _per_row(block_scales, grid.rows),
        _per_row(block_minimums, grid.rows),
    )


def _parts(tiles: Tensor, elements: int) -> Tensor:
    """[G, 2, C, elements of a tile] as [G, 2, C, parts, 16 rows, elements of a row's part]."""
    return tiles.view(*tiles.shape[:3], -1, TILE_ROWS, elements)


def _plain(tiles: Tensor, rows: int, cols: int) -> Tensor:
    """[G, 2, C, parts, 16 rows, inputs of a part] as a matrix [rows, cols], padding left out."""
    matrix = tiles.permute(0, 1, 4, 2, 3, 5).reshape(tiles.shape[0] * PANEL_ROWS, tiles.shape[2] * TILE_COLS)
    return matrix[:rows, :cols].contiguous()


def _per_row(parameters: Tensor, rows: int) -> Tensor:
    """[G, 2, C, 16 rows] as [rows, C]."""
    matrix = parameters.permute(0, 1, 3, 2).reshape(parameters.shape[0] * PANEL_ROWS, parameters.shape[2])
    return matrix[:rows].contiguous()
