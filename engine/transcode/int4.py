"""4-bit matrices with parameters per group, as AWQ, GPTQ, Q4_0 and Q4_1 have them, in the int4 format.

Every value is kept. A group with a negative scale has its values complemented, q' = 15 - q: the same weights,
counted from the other end, since the format's scale codes are not negative.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch

from engine.transcode.accuracy import Accuracy, Transcoded
from engine.transcode.fit import Bytes, Fitted, fit_blocks
from kernels.errors import NonFiniteWeightError, WeightRangeError
from kernels.quantised import BLOCK, GROUP, Int4Matrix, block_count

Doubles = npt.NDArray[np.float64]

# Blocks that are fitted together, so that their arrays stay in the cache (a matrix of 14336 × 4096 on one
# core of a Zen 4: 2.2 s with 1024, 1.5 s with 2048, 1.2 s with 4096).
_CHUNK_BLOCKS = 4096
# Beyond this, factors would leave float16's range: its largest number times the least of the large codes.
_LARGEST = 65504.0 * 128


def transcode_int4(values: Bytes, scales: Doubles, minimums: Doubles, group: int) -> Transcoded:
    """Take over w = scale · value - minimum.

    `values`: 0–15, [rows, cols]; they become the matrix's and may be changed. `scales` (of either sign) and
    `minimums`: [rows, cols / group], float32 numbers or products of two; `group`: weights of a row that share
    them, a multiple of 32 that divides cols.

    A block's error stays within `LARGEST_ERROR` if its weights reach 2^-7 and use most of the range that
    their scales give them, as quantisers see to. Below, float16's smallest step, 2^-24, is coarser than the
    codes could be (1.5 times the bound was seen, with weights of 5e-5 to 1e-3), until all is a small multiple
    of it and exact.

    Raises:
        WeightError: a scale or a minimum is NaN, infinite, or too large for the format.
    """
    rows, cols = values.shape
    _check(scales, minimums, group)
    # Groups inside a block that share their parameters are fitted as one, which saves most of the time.
    together = math.gcd(group, BLOCK)
    scales, minimums = (np.repeat(p, group // together, axis=1) for p in (scales, minimums))
    scales, minimums = _complement(values, scales, minimums, together)
    low, high = _used_values(values.reshape(-1, together))
    low, high = low.reshape(scales.shape), high.reshape(scales.shape)
    _clear_zero_groups(scales, minimums, low, high)
    groups = _Groups(scales, minimums, low, high, BLOCK // together)
    parts, accuracies = [], []
    for start in range(0, groups.blocks, _CHUNK_BLOCKS):
        part, accuracy = groups.fit(start, start + _CHUNK_BLOCKS)
        parts.append(part)
        accuracies.append(accuracy)
    fitted = Fitted(*(np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)))

    def codes(by_block: Bytes) -> torch.Tensor:
        """[groups of a block, blocks] to [rows, groups of 32]."""
        by_row = by_block.T.reshape(rows, -1).repeat(together // GROUP, axis=1)
        return torch.from_numpy(np.ascontiguousarray(by_row[:, : cols // GROUP]))

    def factors(by_block: npt.NDArray[np.float16]) -> torch.Tensor:
        return torch.from_numpy(by_block.reshape(rows, block_count(cols)))

    matrix = Int4Matrix(
        torch.from_numpy(values),
        codes(fitted.scales),
        codes(fitted.minimums),
        factors(fitted.block_scales),
        factors(fitted.block_minimums),
    )
    return Transcoded(matrix, Accuracy.combined(accuracies))


class _Groups:
    """The groups of a matrix, `per_block` to a block, rows filled up with groups of zeros."""

    def __init__(self, scales: Doubles, minimums: Doubles, low: Bytes, high: Bytes, per_block: int) -> None:
        missing = -scales.shape[1] % per_block
        self._arrays = tuple(
            np.pad(array, ((0, 0), (0, missing))).reshape(-1, per_block)
            for array in (scales, minimums, low, high)
        )
        self.blocks = len(self._arrays[0])

    def fit(self, start: int, stop: int) -> tuple[Fitted, Accuracy]:
        """Fit the blocks from `start` to `stop`, and measure the result."""
        scales, minimums, low, high = (
            np.ascontiguousarray(array[start:stop].T, np.float64) for array in self._arrays
        )
        fitted = fit_blocks(*(array.astype(np.float32) for array in (scales, minimums, low, high)))
        return fitted, _accuracy(fitted, scales, minimums, low, high)


def _accuracy(fitted: Fitted, scales: Doubles, minimums: Doubles, low: Doubles, high: Doubles) -> Accuracy:
    """Compare float32 weights at the ends of what a group uses: between them the error is a straight line."""
    slope = fitted.block_scales.astype(np.float32) * fitted.scales.astype(np.float32)
    offset = fitted.block_minimums.astype(np.float32) * fitted.minimums.astype(np.float32)
    largest_error = largest_weight = np.zeros(scales.shape[1])
    for value in (low, high):
        theirs = (scales * value - minimums).astype(np.float32).astype(np.float64)
        ours = (slope * value.astype(np.float32) - offset).astype(np.float64)
        largest_error = np.maximum(largest_error, np.abs(theirs - ours).max(axis=0))
        largest_weight = np.maximum(largest_weight, np.abs(theirs).max(axis=0))
    # A block without weights has groups of zeros only, which are fitted exactly.
    errors = np.divide(largest_error, largest_weight, out=largest_error, where=largest_weight > 0)
    return Accuracy.of(errors, exact=bool(np.all(slope == scales) and np.all(offset == minimums)))


def _check(scales: Doubles, minimums: Doubles, group: int) -> None:
    for fault, error in (
        (~(np.isfinite(scales) & np.isfinite(minimums)), NonFiniteWeightError),
        (np.maximum(np.abs(scales) * 15, np.abs(minimums)) > _LARGEST, WeightRangeError),
    ):
        if fault.any():
            row, column = np.argwhere(fault)[0].tolist()
            raise error("the matrix", row, column * group)


def _complement(values: Bytes, scales: Doubles, minimums: Doubles, group: int) -> tuple[Doubles, Doubles]:
    """Turn groups of negative scale around: scale·q - minimum = -scale·(15 - q) - (minimum - 15·scale)."""
    negative = scales < 0
    grouped = values.reshape(*scales.shape, group)
    grouped ^= (negative * np.uint8(15))[..., None]  # 15 - q is q with its four bits turned over
    return np.abs(scales), np.where(negative, minimums - 15 * scales, minimums)


def _used_values(groups: Bytes) -> tuple[Bytes, Bytes]:
    """The least and the greatest value of each group, [groups, weights] to two [groups].

    Transposed piece by piece, since numpy reduces short rows slowly (130 ms against 22 ms for 14336 × 4096).
    """
    low, high = np.empty(len(groups), np.uint8), np.empty(len(groups), np.uint8)
    for start in range(0, len(groups), 4096):
        piece = np.ascontiguousarray(groups[start : start + 4096].T)
        piece.min(axis=0, out=low[start : start + 4096])
        piece.max(axis=0, out=high[start : start + 4096])
    return low, high


def _clear_zero_groups(scales: Doubles, minimums: Doubles, low: Bytes, high: Bytes) -> None:
    """Groups whose weights are all zero need no scale; one would take precision from the block's others.

    AWQ gives such groups a scale of its own choice, with all values at the zero point.
    """
    zero = (scales * low == minimums) & (scales * high == minimums)
    scales[zero] = 0
    minimums[zero] = 0
