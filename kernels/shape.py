"""Sizes of tiles, panels and packed experts; `kernels.layout` describes them. Torch-free, for planning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kernels.formats import BLOCK_GROUPS, WeightFormat

TILE_ROWS = 16
TILE_COLS = 32
TILE_BYTES = TILE_ROWS * TILE_COLS * 2
PANEL_ROWS = 32


@dataclass(frozen=True)
class ExpertShape:
    """Sizes of an expert: w1 and w3 are [intermediate, hidden], w2 is [hidden, intermediate]."""

    hidden: int
    intermediate: int
    format: WeightFormat = WeightFormat.BF16

    # Cached, because the kernels ask for these numbers with every layer of every token.

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.intermediate < 1:
            raise ValueError(f"an expert cannot be {self.hidden} × {self.intermediate}")

    @cached_property
    def k_tiles(self) -> int:
        """Tiles along the hidden dimension."""
        return -(-self.hidden // TILE_COLS)

    @cached_property
    def panels(self) -> int:
        """Panels of 32 intermediate neurons: the pieces an expert can be divided into."""
        return -(-self.intermediate // PANEL_ROWS)

    @cached_property
    def panel_nbytes(self) -> int:
        """Bytes of one panel: for each tile along the hidden size four of w1 and w3, and two of w2."""
        return 6 * self.k_tiles * (self.format.tile_nbytes + self.format.group_nbytes)

    @cached_property
    def side_nbytes(self) -> int:
        """Bytes of the side table behind the panels."""
        gate_up = self.panels * 4 * -(-self.k_tiles // BLOCK_GROUPS)
        down = -(-self.panels // BLOCK_GROUPS) * 2 * self.k_tiles
        return (gate_up + down) * self.format.side_nbytes

    @cached_property
    def native(self) -> tuple[int, int, int]:
        """The shape as the native code takes it."""
        return self.hidden, self.intermediate, self.format.number

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the packed expert."""
        return self.panels * self.panel_nbytes + self.side_nbytes
