"""Take over matrices in GGUF's block formats: Q8_0 and Q4_K exactly, Q4_0 and Q4_1 with re-rounded scales."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from engine.checkpoint.gguf_quants import BLOCK, SUPER_BLOCK, Bytes, GgmlType, q4_k_scales, q4_k_values
from engine.transcode.accuracy import Accuracy, Transcoded
from engine.transcode.int4 import transcode_int4
from kernels.formats import WeightFormat
from kernels.quantised import Int4Matrix, Int8Matrix, block_count

FORMATS = {
    GgmlType.Q8_0: WeightFormat.INT8,
    GgmlType.Q4_K: WeightFormat.INT4,
    GgmlType.Q4_0: WeightFormat.INT4,
    GgmlType.Q4_1: WeightFormat.INT4,
}


def transcode_blocks(kind: GgmlType, blocks: Bytes) -> Transcoded:
    """Take over a matrix of a type in `FORMATS`: uint8 [rows, blocks of a row, bytes of a block].

    Raises:
        WeightError: a scale is NaN or infinite.
    """
    return _TRANSCODERS[kind](blocks)


def _q8_0(blocks: Bytes) -> Transcoded:
    rows, groups, _ = blocks.shape
    values = np.ascontiguousarray(blocks[..., 2:]).view(np.int8).reshape(rows, groups * BLOCK)
    matrix = Int8Matrix(torch.from_numpy(values), torch.from_numpy(_halves(blocks, 0)))
    return Transcoded(matrix, Accuracy.exact_copy(rows * block_count(groups * BLOCK)))


def _q4_k(blocks: Bytes) -> Transcoded:
    """The format's own arithmetic in float32, (d·s)·q - (e·m), is that of Q4_K."""
    rows, per_row, nbytes = blocks.shape
    flat = blocks.reshape(-1, nbytes)
    scales, minimums = (torch.from_numpy(codes.reshape(rows, -1)) for codes in q4_k_scales(flat))
    matrix = Int4Matrix(
        torch.from_numpy(q4_k_values(flat).reshape(rows, per_row * SUPER_BLOCK)),
        scales,
        minimums,
        torch.from_numpy(_halves(blocks, 0)),
        torch.from_numpy(_halves(blocks, 2)),
    )
    return Transcoded(matrix, Accuracy.exact_copy(rows * per_row))


def _q4_0(blocks: Bytes) -> Transcoded:
    """w = d·(q - 8), with d of either sign."""
    scales = _halves(blocks, 0).astype(np.float64)
    return transcode_int4(_values(blocks[..., 2:]), scales, scales * 8, BLOCK)


def _q4_1(blocks: Bytes) -> Transcoded:
    """w = d·q + m."""
    scales, minimums = (_halves(blocks, at).astype(np.float64) for at in (0, 2))
    return transcode_int4(_values(blocks[..., 4:]), scales, -minimums, BLOCK)


def _values(packed: Bytes) -> Bytes:
    """The nibbles of [rows, blocks, 16] bytes, the low ones of a block first: [rows, blocks · 32]."""
    rows, blocks, _ = packed.shape
    values = np.empty((rows, blocks, 2, BLOCK // 2), np.uint8)
    np.bitwise_and(packed, 0x0F, out=values[:, :, 0])
    np.right_shift(packed, 4, out=values[:, :, 1])
    return values.reshape(rows, blocks * BLOCK)


def _halves(blocks: Bytes, at: int) -> npt.NDArray[np.float16]:
    """The float16 at byte `at` of every block: [rows, blocks]."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view("<f2")[..., 0].astype(np.float16)


_TRANSCODERS: dict[GgmlType, Callable[[Bytes], Transcoded]] = {
    GgmlType.Q8_0: _q8_0,
    GgmlType.Q4_K: _q4_k,
    GgmlType.Q4_0: _q4_0,
    GgmlType.Q4_1: _q4_1,
}
