"""Packing an expert piece by piece, while it is read: some rows of one of its matrices at a time."""

from __future__ import annotations

from torch import Tensor

from kernels import native
from kernels.errors import raise_fault
from kernels.isa import default_isa
from kernels.layout import check_block, check_weight
from kernels.shape import TILE_ROWS, ExpertShape

MATRICES = ("w1", "w3", "w2")


def matrix_size(matrix: str, shape: ExpertShape) -> tuple[int, int]:
    """Rows and columns of "w1", "w3" or "w2"."""
    size = (shape.intermediate, shape.hidden)
    return size[::-1] if matrix == "w2" else size


def pack_expert_rows(matrix: str, first: int, rows: Tensor, out: Tensor, shape: ExpertShape) -> None:
    """Pack rows `first` and following of "w1", "w3" or "w2" into the expert's block.

    Formats of 8 and 4 bits are quantised on the way, sixteen rows at a time.

    Args:
        matrix: which of the three.
        first: the first row's number, a multiple of 16.
        rows: contiguous bf16 [n, columns of the matrix] on the CPU; n is a multiple of 16 except at the end.
        out: uint8 [shape.nbytes], aligned to 64 bytes.
        shape: the expert's sizes and format.

    The GIL is released meanwhile; other rows may be packed by other threads at the same time. With the last
    rows goes the padding behind them.

    Raises:
        NonFiniteWeightError: naming the matrix, and the row and column in it.
        WeightRangeError: likewise; a weight is too large for the format.
        ValueError: arguments that do not belong together.
    """
    height, width = matrix_size(matrix, shape)
    count = rows.shape[0]
    whole = count % TILE_ROWS == 0 or first + count == height
    if first % TILE_ROWS or count < 1 or first < 0 or first + count > height or not whole:
        raise ValueError(f"rows {first} to {first + count} of {height} are no whole tiles of {TILE_ROWS}")
    check_weight(matrix, rows, (count, width))
    check_block(out, shape)
    fault = native.load().pack_rows(
        default_isa().value,
        shape.hidden,
        shape.intermediate,
        shape.format.number,
        MATRICES.index(matrix),
        first,
        count,
        rows.data_ptr(),
        out.data_ptr(),
    )
    raise_fault(fault, MATRICES)
