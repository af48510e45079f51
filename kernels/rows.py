"""Packing an expert piece by piece, while it is read: some rows of one of its matrices at a time."""

from __future__ import annotations

from torch import Tensor

from kernels import native
from kernels.errors import NonFiniteWeightError
from kernels.formats import WeightFormat
from kernels.layout import check_block, check_weight
from kernels.shape import TILE_ROWS, ExpertShape

MATRICES = ("w1", "w3", "w2")


def matrix_size(matrix: str, shape: ExpertShape) -> tuple[int, int]:
    """Rows and columns of "w1", "w3" or "w2"."""
    size = (shape.intermediate, shape.hidden)
    return size[::-1] if matrix == "w2" else size


def pack_expert_rows(matrix: str, first: int, rows: Tensor, out: Tensor, shape: ExpertShape) -> None:
    """Pack rows `first` and following of "w1", "w3" or "w2" into the expert's bf16 block.

    Args:
        matrix: which of the three.
        first: the first row's number, a multiple of 16.
        rows: contiguous bf16 [n, columns of the matrix] on the CPU; n is a multiple of 16 except at the end.
        out: uint8 [shape.nbytes], aligned to 64 bytes.
        shape: the expert's sizes; its format must be bf16.

    The GIL is released meanwhile; other rows may be packed by other threads at the same time. With the last
    rows goes the padding behind them.

    Raises:
        NonFiniteWeightError: naming the matrix, and the row and column in it.
        ValueError: arguments that do not belong together.
    """
    height, width = matrix_size(matrix, shape)
    count = rows.shape[0]
    if shape.format is not WeightFormat.BF16:
        raise ValueError(f"rows are packed in bf16 only, not in {shape.format}")
    whole = count % TILE_ROWS == 0 or first + count == height
    if first % TILE_ROWS or count < 1 or first < 0 or first + count > height or not whole:
        raise ValueError(f"rows {first} to {first + count} of {height} are no whole tiles of {TILE_ROWS}")
    check_weight(matrix, rows, (count, width))
    check_block(out, shape)
    fault = native.load().pack_expert_rows(
        shape.hidden,
        shape.intermediate,
        MATRICES.index(matrix),
        first,
        count,
        rows.data_ptr(),
        out.data_ptr(),
    )
    if fault >= 0:
        raise NonFiniteWeightError(matrix, first + fault // width, fault % width)
