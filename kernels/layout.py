"""The packed layout of weights on the host (csrc/layout.h), and what it asks of tensors.

A tile is 16 rows × 32 inputs; as bf16 1 KB, pairs of inputs interleaved, [16 pairs][16 rows][2]. An expert is
a sequence of panels of 32 intermediate neurons; a panel holds the tiles of its w1 rows, of its w3 rows, and
of the matching w2 columns, so that it is a complete piece of the expert. Sizes are padded to 32 with zeros.

Quantised formats (`kernels.formats`) have smaller tiles: int8 512 bytes, [8 quads of inputs][16 rows][4];
int4 256 bytes, [4 octets][16 rows] words of 32 bits, whose bits 4j … 4j+3 (j < 4) hold input 2j of the
octet and bits 16+4j … 16+4j+3 input 2j+1. A panel's tiles are followed, in the same order, by 32 bytes for
each: int8 float16 scales [16 rows]; int4 scales [16 rows] and minimums [16 rows], a byte each. For int4 a
side table follows the last panel, float16 d [16 rows] and e [16 rows] for each row tile and 8 tiles along the
reduction: first those of w1 and w3 [panel][2 row tiles of w1, 2 of w3][hidden / 256], then w2's
[panel / 8][row tile].
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import native
from kernels.errors import raise_fault
from kernels.formats import WeightFormat
from kernels.shape import TILE_BYTES, TILE_COLS, TILE_ROWS
from kernels.shape import ExpertShape as ExpertShape


@dataclass(frozen=True)
class PackedLinear:
    """A linear layer's weight [rows, cols] in tiles, row tile by row tile; rows are outputs."""

    rows: int
    cols: int
    data: Tensor  # uint8 [nbytes]

    @classmethod
    def from_weight(cls, weight: Tensor) -> PackedLinear:
        """Pack a bf16 weight [rows, cols] on the CPU. The GIL is released meanwhile.

        Raises NonFiniteWeightError for a weight that is NaN or infinite.
        """
        if weight.dim() != 2 or 0 in weight.shape:
            raise ValueError(f"a linear weight has two dimensions, not {describe(weight)}")
        check_weight("the weight", weight, (weight.shape[0], weight.shape[1]))
        rows, cols = weight.shape
        data = torch.empty(packed_linear_nbytes(rows, cols), dtype=torch.uint8)
        fault = native.load().pack_linear(rows, cols, weight.data_ptr(), data.data_ptr())
        raise_fault(fault, ("the weight",))
        return cls(rows, cols, data)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed weight."""
        return packed_linear_nbytes(self.rows, self.cols)

    def unpack(self) -> Tensor:
        """Return the bf16 weight [rows, cols]."""
        k = -(-self.cols // TILE_COLS)
        tiles = self.data.view(torch.bfloat16).view(-1, k, TILE_COLS // 2, TILE_ROWS, 2)
        plain = tiles.permute(0, 3, 1, 2, 4).reshape(-1, k * TILE_COLS)
        return plain[: self.rows, : self.cols].contiguous()


def packed_linear_nbytes(rows: int, cols: int) -> int:
    """Bytes of a packed linear weight: rows and columns are padded to 32."""
    return 2 * -(-rows // (2 * TILE_ROWS)) * -(-cols // TILE_COLS) * TILE_BYTES


def check_expert(
    w1: Tensor, w3: Tensor, w2: Tensor, out: Tensor, format: WeightFormat = WeightFormat.BF16
) -> ExpertShape:
    """Return the shape of the expert, or raise ValueError where the tensors do not belong together."""
    if w1.dim() != 2:
        raise ValueError(f"w1 has two dimensions, not {describe(w1)}")
    shape = ExpertShape(hidden=w1.shape[1], intermediate=w1.shape[0], format=format)
    check_weight("w1", w1, (shape.intermediate, shape.hidden))
    check_weight("w3", w3, (shape.intermediate, shape.hidden))
    check_weight("w2", w2, (shape.hidden, shape.intermediate))
    check_block(out, shape)
    return shape


def check_weight(name: str, weight: Tensor, size: tuple[int, int]) -> None:
    """Raise ValueError unless `weight` is a contiguous bf16 matrix of that size on the CPU."""
    if (
        weight.dtype != torch.bfloat16
        or weight.shape != size
        or not weight.is_contiguous()
        or weight.device.type != "cpu"
    ):
        raise ValueError(
            f"{name} must be contiguous bfloat16 {list(size)} on the CPU, not {describe(weight)}"
        )


def check_block(block: Tensor, shape: ExpertShape) -> None:
    """Raise ValueError unless `block` can hold a packed expert where the CPU's kernels read it."""
    if (
        block.dtype != torch.uint8
        or block.shape != (shape.nbytes,)
        or not block.is_contiguous()
        or block.device.type != "cpu"
        or block.data_ptr() % 64
    ):
        raise ValueError(
            f"a packed expert is contiguous uint8 [{shape.nbytes}] on the CPU, aligned to 64 bytes, "
            f"not {describe(block)}"
        )


def describe(tensor: Tensor) -> str:
    """Return what a message says of a tensor."""
    contiguous = "" if tensor.is_contiguous() else ", not contiguous"
    return f"{tensor.dtype} {list(tensor.shape)} on {tensor.device}{contiguous}"
