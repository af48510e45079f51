"""Ranges of an expert's panels (`kernels.layout`): their bytes, and how many are unpacked at once."""

from __future__ import annotations

from functools import lru_cache

from kernels.formats import BLOCK_GROUPS
from kernels.shape import PANEL_ROWS, ExpertShape

# Neurons that are unpacked at once, at most: of Mixtral's experts a quarter, 88 MB in bf16 instead of 352.
# The products are still large enough for cuBLAS.
_NEURONS_AT_ONCE = 4096

Panels = tuple[int, int]  # the first panel, and the one behind the last


@lru_cache(maxsize=4096)
def byte_ranges(shape: ExpertShape, panels: Panels | None = None) -> tuple[tuple[int, int], ...]:
    """Byte ranges (first, end) of a packed block that the panels need: all of it where `panels` is None.

    The panels themselves, and for int4 their entries in the side table behind the last panel: a row for each
    panel's w1 and w3, and for w2 a row for every eight panels. With the last panel all of the table comes in
    the same range: a few bytes more, and one copy instead of three.

    Raises:
        ValueError: the panels are not a range within the expert.
    """
    if panels is None or panels == (0, shape.panels):
        return ((0, shape.nbytes),)
    first, end = panels
    if not 0 <= first < end <= shape.panels:
        raise ValueError(f"panels {first} to {end} are no range of an expert of {shape.panels}")
    if end == shape.panels:
        return ((first * shape.panel_nbytes, shape.nbytes),)
    ranges = [(first * shape.panel_nbytes, end * shape.panel_nbytes)]
    if shape.side_nbytes:
        table = shape.panels * shape.panel_nbytes
        gate_up = 4 * -(-shape.k_tiles // BLOCK_GROUPS) * shape.format.side_nbytes
        ranges.append((table + first * gate_up, table + end * gate_up))
        table += shape.panels * gate_up
        down = 2 * shape.k_tiles * shape.format.side_nbytes
        ranges.append((table + first // BLOCK_GROUPS * down, table + -(-end // BLOCK_GROUPS) * down))
    return tuple(ranges)


def panels_at_once(shape: ExpertShape) -> int:
    """How many panels are unpacked at once for products with many tokens: parts of equal size."""
    parts = -(-shape.panels * PANEL_ROWS // _NEURONS_AT_ONCE)
    return -(-shape.panels // parts)


def unpacked_values(shape: ExpertShape) -> int:
    """Weights in that many panels."""
    return 3 * min(panels_at_once(shape) * PANEL_ROWS, shape.intermediate) * shape.hidden
