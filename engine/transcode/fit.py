"""Find the scales and minimums of the int4 format that come closest to those of a file.

The file says w = a·q - b for each group of weights. The format has w = (d·s)·q - (e·m), with 8-bit s and m
per group and float16 d and e per block of 256 weights, so a and b have to be rounded; the values q stay. The
numbers are chosen to make the block's largest error small, in two searches:

- d is A/n for the block's largest scale A and each n of a list, s the nearest code. Over the values from low
  to high that a group uses, a slope d·s instead of a costs at least |d·s - a|·(high - low)/2, namely when the
  minimum puts the error in the middle of them. The d whose worst group costs least is kept.
- The minimum that does so is b + (d·s - a)·(low + high)/2. e is searched like d; a group then costs what its
  slope costs and |e·m - that minimum|.

e takes the sign of the block's largest minimum, and a group whose minimum has the other sign gets m = 0. Only
GGUF's Q4_1 can hold such groups: all 32 weights of one are above zero, and those of another are not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

Bytes = npt.NDArray[np.uint8]
Halves = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]

# Codes that the block's largest scale or minimum may get. Large ones round the others finely; small ones are
# exact where all groups of a block share their parameters and the zero point is an integer (GPTQ, AWQ).
_SCALE_CODES = (1, *range(128, 256))
_MINIMUM_CODES = (*range(1, 17), *range(128, 256))
_TOP = 255
_LARGEST_HALF = np.float32(65504)
_SMALLEST_HALF = np.float32(2.0**-24)


class Fitted(NamedTuple):
    """The parameters found for a number of blocks."""

    block_scales: Halves  # d [blocks]
    scales: Bytes  # s [groups, blocks]
    block_minimums: Halves  # e [blocks]
    minimums: Bytes  # m [groups, blocks]


def fit_blocks(scales: Floats, minimums: Floats, low: Floats, high: Floats) -> Fitted:
    """Fit the groups of blocks, each array [groups of a block, blocks].

    `scales` are not negative; `low` and `high` are the least and the greatest value that a group uses.
    """
    half = (high - low) * np.float32(0.5)
    d, s = _search(scales, half, np.zeros_like(scales), _SCALE_CODES)
    slope = d * s - scales
    middle = (high + low) * np.float32(0.5)
    wanted = minimums + slope * middle
    negative = -wanted.min(axis=0) > wanted.max(axis=0)
    sign = np.where(negative, np.float32(-1), np.float32(1))
    e, m = _search(wanted * sign, np.ones_like(half), np.abs(slope) * half, _MINIMUM_CODES)
    return Fitted(d.astype(np.float16), s.astype(np.uint8), (e * sign).astype(np.float16), m.astype(np.uint8))


def _search(
    targets: Floats, weights: Floats, known: Floats, top_codes: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """The unit [blocks], a float16 number, and codes [groups, blocks] for the targets.

    Of all units that give a block's largest target one of `top_codes`, the one with the smallest
    max over the groups of weight·|unit·code - target| + known.
    """
    largest = np.maximum(targets.max(axis=0), 0)
    best = np.zeros_like(largest)
    least = np.full_like(largest, np.inf)
    work = np.empty_like(targets)
    codes = np.empty_like(targets)
    for code in top_codes:
        unit = _rounded(largest / np.float32(code))
        _nearest_codes(targets, unit, codes)
        np.multiply(codes, unit, out=work)
        np.subtract(work, targets, out=work)
        np.abs(work, out=work)
        np.multiply(work, weights, out=work)
        np.add(work, known, out=work)
        cost = work.max(axis=0)
        better = cost < least
        np.copyto(least, cost, where=better)
        np.copyto(best, unit, where=better)
    _nearest_codes(targets, best, codes)
    return best, codes


def _nearest_codes(targets: Floats, unit: Floats, codes: Floats) -> None:
    """Set codes to the whole number of units, 0 to 255, that is nearest to each target."""
    inverse = np.divide(np.float32(1), unit, out=np.zeros_like(unit), where=unit > 0)
    np.multiply(targets, inverse, out=codes)
    np.rint(codes, out=codes)
    np.clip(codes, 0, _TOP, out=codes)


def _rounded(numbers: Floats) -> Floats:
    """To the nearest float16 number, at most the largest and, unless zero, at least the smallest.

    By torch: numpy converts denormal numbers, which most units are, slowly (3.7 s against 1.5 s in all for a
    matrix of 14336 × 4096 on one core of a Zen 4).
    """
    bounded = torch.from_numpy(np.clip(numbers, np.where(numbers > 0, _SMALLEST_HALF, 0), _LARGEST_HALF))
    rounded: Floats = bounded.half().float().numpy()
    return rounded
