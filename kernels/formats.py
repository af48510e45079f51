"""The formats that expert weights are held in. Torch-free."""

from __future__ import annotations

from enum import StrEnum

GROUP = 32  # weights along the reduction that share a scale (and a minimum)
BLOCK_GROUPS = 8  # groups of int4 that share a pair of float16 factors: 256 weights


class WeightFormat(StrEnum):
    """How an expert's weights are stored; `kernels.layout` says where each of them lies.

    bf16: as in the checkpoint. int8: w = d·q with q from -128 to 127 and a float16 d for 32 weights along the
    reduction. int4: w = (d·s)·q - (e·m) with q from 0 to 15, 8-bit s and m for 32 weights, and float16 d and
    e for 256: the form of GGUF's Q4_K, with scales of 8 bits instead of 6.
    """

    BF16 = "bf16"
    INT8 = "int8"
    INT4 = "int4"

    @property
    def number(self) -> int:
        """The native code's number for it."""
        return list(WeightFormat).index(self)

    @property
    def tile_nbytes(self) -> int:
        """Bytes of the values of a tile, 16 rows × 32 inputs."""
        return {WeightFormat.BF16: 1024, WeightFormat.INT8: 512, WeightFormat.INT4: 256}[self]

    @property
    def group_nbytes(self) -> int:
        """Bytes that a tile's 16 groups add: for int8 16 float16 scales, for int4 16 scales and minimums."""
        return 0 if self is WeightFormat.BF16 else 32

    @property
    def side_nbytes(self) -> int:
        """Bytes of a side table's entry for 16 rows × 256 inputs: int4's float16 pairs."""
        return 64 if self is WeightFormat.INT4 else 0

    @property
    def bits(self) -> float:
        """Bits of one weight, everything included: 16, 8.5 or 4.625."""
        per_tile = self.tile_nbytes + self.group_nbytes + self.side_nbytes / BLOCK_GROUPS
        return per_tile * 8 / (16 * GROUP)
