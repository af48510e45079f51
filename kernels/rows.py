"""Packing an expert piece by piece, while it is read: some rows of one of its matrices at a time."""

from __future__ import annotations

import os

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
    count = rows.shape[0]
    _check_rows(matrix, first, count, shape)
    check_weight(matrix, rows, (count, matrix_size(matrix, shape)[1]))
    check_block(out, shape)
    place = _place(matrix, first, count, shape)
    raise_fault(native.load().pack_rows(*place, rows.data_ptr(), out.data_ptr()), MATRICES)


def can_pack_files() -> bool:
    """Whether this system has `pack_expert_file_rows`; Windows has not."""
    return hasattr(native.load(), "pack_file_rows")


def pack_expert_file_rows(
    matrix: str,
    first: int,
    count: int,
    file: int,
    position: int,
    scratch: Tensor,
    out: Tensor,
    shape: ExpertShape,
) -> int:
    """Read rows of "w1", "w3" or "w2" from a file and pack them into the expert's block, in one native call.

    As `pack_expert_rows` for `count` rows, bf16, that begin at byte `position` of an open file. They go
    through `scratch`, contiguous bf16 [n >= 16, columns of the matrix] on the CPU, best of a size that stays
    in a core's cache. Returns how many bytes were read: fewer than the rows have if the file ends early.

    Raises:
        OSError: the file cannot be read.
        NonFiniteWeightError, WeightRangeError, ValueError: as `pack_expert_rows`.
    """
    _check_rows(matrix, first, count, shape)
    check_weight("scratch", scratch, (max(len(scratch), TILE_ROWS), matrix_size(matrix, shape)[1]))
    check_block(out, shape)
    place = _place(matrix, first, count, shape)
    result = native.load().pack_file_rows(
        *place, file, position, scratch.data_ptr(), len(scratch), out.data_ptr()
    )
    if result.error:
        raise OSError(result.error, os.strerror(result.error))
    raise_fault(result.fault, MATRICES)
    return int(result.bytes)


def _place(matrix: str, first: int, count: int, shape: ExpertShape) -> tuple[object, ...]:
    """What both native functions are told first: how to pack, and which rows of which matrix."""
    sizes = shape.hidden, shape.intermediate, shape.format.number
    return default_isa().value, *sizes, MATRICES.index(matrix), first, count


def _check_rows(matrix: str, first: int, count: int, shape: ExpertShape) -> None:
    """Rows of a matrix that can be packed: whole tiles, or up to its end."""
    height, _ = matrix_size(matrix, shape)
    whole = count % TILE_ROWS == 0 or first + count == height
    if first % TILE_ROWS or count < 1 or first < 0 or first + count > height or not whole:
        raise ValueError(f"rows {first} to {first + count} of {height} are no whole tiles of {TILE_ROWS}")
