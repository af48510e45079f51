"""Take over matrices of AWQ and GPTQ files: small integers in int32, scales and integer zero points.

Both store the transposed matrix, [inputs, outputs], and mean w = scale · (value - zero).

- AWQ ("gemm") packs 8 neighbouring outputs of an input into an int32: qweight [in, out/8], qzeros
  [groups, out/8], scales [groups, out]. From the low bits on, they are outputs 0, 2, 4, 6, 1, 3, 5, 7.
- GPTQ packs neighbouring inputs of an output: qweight [in · bits/32, out]; but qzeros are packed along the
  outputs, [groups, out · bits/32]. Both in plain order. Version 1 of the format stores zero - 1, and the sum
  is taken in `bits` bits, as AutoGPTQ does: a zero of 0 lies in the file as all ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.transcode.accuracy import Accuracy, Transcoded
from engine.transcode.errors import RefusedError
from engine.transcode.int4 import transcode_int4
from kernels.quantised import GROUP, Int8Matrix, block_count

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Doubles = npt.NDArray[np.float64]

_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@dataclass(frozen=True)
class PackedMatrix:
    """The tensors of one matrix; scales are float32 numbers. Sizes are as in the module's description."""

    qweight: Ints
    qzeros: Ints
    scales: npt.NDArray[np.float32]  # [groups, out]
    group: int  # inputs that share a scale


def transcode_awq(packed: PackedMatrix) -> Transcoded:
    """Take over 4 bits of AWQ as int4. Raises WeightError for a scale that is NaN or infinite."""
    return _int4(_unpack_awq(packed.qweight), _unpack_awq(packed.qzeros), packed)


def transcode_gptq4(packed: PackedMatrix, *, stored_minus_one: bool) -> Transcoded:
    """Take over 4 bits of GPTQ as int4; `stored_minus_one` is version 1 of the format.

    Raises WeightError for a scale that is NaN or infinite.
    """
    zeros = _nibbles(packed.qzeros) + np.uint8(stored_minus_one) & np.uint8(15)
    return _int4(_nibbles(_transposed(packed.qweight)), zeros.T, packed)


def transcode_gptq8(packed: PackedMatrix, *, stored_minus_one: bool) -> Transcoded:
    """Take over 8 bits of GPTQ as int8, exactly; `stored_minus_one` is version 1 of the format.

    Raises:
        RefusedError: a value minus its zero point does not fit into 8 bits with a sign, or a scale is no
            float16 number.
        WeightError: a scale is NaN or infinite.
    """
    values = _bytes(_transposed(packed.qweight))  # [out, in]
    zeros = (_bytes(packed.qzeros) + np.uint8(stored_minus_one)).T  # [out, groups]
    signed = values.reshape(*zeros.shape, packed.group).astype(np.int16) - zeros[..., None]
    if signed.min() < -128 or signed.max() > 127:
        raise RefusedError(
            "its 8-bit values have another zero point than 128, so they are not signed 8-bit numbers",
            "Use a version that was quantised symmetrically (“sym”: true), or one of 4 bits.",
        )
    scales = packed.scales.T
    halves = torch.from_numpy(scales.copy()).half()
    if not np.array_equal(halves.float().numpy(), scales, equal_nan=True):
        raise RefusedError(
            "its scales are not float16 numbers, so they would have to be rounded",
            "Use a version with float16 scales.",
        )
    out, cols = values.shape
    matrix = Int8Matrix(
        torch.from_numpy(signed.astype(np.int8).reshape(out, cols)),
        halves.repeat_interleave(packed.group // GROUP, dim=1),
    )
    return Transcoded(matrix, Accuracy.exact_copy(out * block_count(cols)))


def _int4(values: Bytes, zeros: Bytes, packed: PackedMatrix) -> Transcoded:
    """`values` [out, in], `zeros` [out, groups]."""
    scales: Doubles = packed.scales.T.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity times zero; the check for such scales comes next
        minimums = scales * zeros
    return transcode_int4(values, scales, minimums, packed.group)


def _unpack_awq(packed: Ints) -> Bytes:
    """[n, out/8] to [out, n]."""
    words = _transposed(packed)
    values = np.empty((words.shape[0], 8, words.shape[1]), np.uint8)
    for nibble, output in enumerate(_AWQ_ORDER):
        values[:, output] = words >> (4 * nibble) & 0x0F
    return values.reshape(-1, words.shape[1])


def _nibbles(words: Ints) -> Bytes:
    """[n, m] to [n, 8m], from the low bits on."""
    packed = _bytes(words)
    values = np.empty((*packed.shape, 2), np.uint8)
    np.bitwise_and(packed, 0x0F, out=values[..., 0])
    np.right_shift(packed, 4, out=values[..., 1])
    return values.reshape(len(packed), -1)


def _bytes(words: Ints) -> Bytes:
    """[n, m] to [n, 4m], from the low bits on."""
    return np.ascontiguousarray(words, "<i4").view(np.uint8)


def _transposed(words: Ints) -> Ints:
    """By torch, which copies a transposed matrix several times faster than numpy."""
    transposed: Ints = torch.from_numpy(words).t().contiguous().numpy()
    return transposed
