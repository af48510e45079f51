"""Sizes of tiles, panels and packed experts; `kernels.layout` describes them. Torch-free, for planning."""

from __future__ import annotations

from dataclasses import dataclass

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

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.intermediate < 1:
            raise ValueError(f"an expert cannot be {self.hidden} × {self.intermediate}")

    @property
    def k_tiles(self) -> int:
        """Tiles along the hidden dimension."""
        return -(-self.hidden // TILE_COLS)

    @property
    def panels(self) -> int:
        """Panels of 32 intermediate neurons: the pieces an expert can be divided into."""
        return -(-self.intermediate // PANEL_ROWS)

    @property
    def panel_nbytes(self) -> int:
        """Bytes of one panel: for each tile along the hidden size four of w1 and w3, and two of w2."""
        return 6 * self.k_tiles * (self.format.tile_nbytes + self.format.group_nbytes)

    @property
    def side_nbytes(self) -> int:
        """Bytes of the side table behind the panels."""
        gate_up = self.panels * 4 * -(-self.k_tiles // BLOCK_GROUPS)
        down = -(-self.panels // BLOCK_GROUPS) * 2 * self.k_tiles
        return (gate_up + down) * self.format.side_nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of the packed expert."""
        return self.panels * self.panel_nbytes + self.side_nbytes
