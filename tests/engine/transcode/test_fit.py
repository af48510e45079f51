"""The search for scales and minimums, against plain rounding and against what must be exact."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.transcode.fit import Fitted, fit_blocks
from engine.transcode.int4 import transcode_int4
from tests.engine.transcode.files import block_errors


def blocks(seed: int, count: int) -> tuple[np.ndarray, ...]:
    """Scales, minimums, and the values used, [8, count], as 4-bit quantisers choose them."""
    random = np.random.default_rng(seed)
    scales = random.uniform(0.3, 1, (8, count)) / 100
    minimums = scales * random.uniform(6, 9, (8, count))
    low = random.integers(0, 3, (8, count))
    high = random.integers(13, 16, (8, count))
    return tuple(array.astype(np.float32) for array in (scales, minimums, low, high))


def largest_errors(fitted: Fitted, scales: np.ndarray, minimums: np.ndarray, *used: np.ndarray) -> np.ndarray:
    """The largest error of each block, in float64."""
    d, s, e, m = (part.astype(np.float64) for part in fitted)
    return np.max([np.abs((d * s - scales) * q - (e * m - minimums)).max(axis=0) for q in used], axis=0)


def plainly_rounded(scales: np.ndarray, minimums: np.ndarray) -> Fitted:
    """The block's largest number gets the code 255."""
    d, e = ((p.max(axis=0) / 255).astype(np.float16) for p in (scales, minimums))
    s, m = ((np.rint(p / unit).clip(0, 255)).astype(np.uint8) for p, unit in ((scales, d), (minimums, e)))
    return Fitted(d, s, e, m)


def test_the_search_more_than_halves_the_error_of_plain_rounding() -> None:
    case = blocks(0, 2000)
    ours = largest_errors(fit_blocks(*case), *case)
    plain = largest_errors(plainly_rounded(*case[:2]), *case)
    assert ours.mean() < 0.5 * plain.mean()
    assert (ours <= plain).mean() > 0.99


def test_a_minimum_makes_up_for_a_wrong_slope_in_the_middle_of_the_used_values() -> None:
    """There the error is at most half a step of the minimum's codes, so both ends cost about the same."""
    scales, minimums, low, high = blocks(1, 500)
    d, s, e, m = (part.astype(np.float64) for part in fit_blocks(scales, minimums, low, high))
    slope, offset = d * s - scales, e * m - minimums
    assert np.abs(slope).max() > 1e-6
    assert np.all(np.abs(slope * (low + high) / 2 - offset) <= e / 2 + 1e-7)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(-14, 3), st.booleans())
def test_what_the_format_can_say_is_found_where_a_code_is_255(
    seed: int, exponent: int, negative: bool
) -> None:
    """Parameters that come from the format's own numbers, the largest code 255, are kept to the bit."""
    random = np.random.default_rng(seed)
    values = random.integers(0, 16, (2, 512), np.uint8)
    values[:, ::32], values[:, 1::32] = 0, 15
    codes = random.integers(0, 256, (2, 2, 16))
    codes[:, :, ::8] = 255
    units = (
        np.ldexp(random.integers(1024, 2048, (2, 2, 2)), exponent - 10).astype(np.float16).repeat(8, axis=2)
    )
    scales, minimums = units.astype(np.float64) * codes
    result = transcode_int4(values.copy(), scales, minimums * (-1 if negative else 1), 32)
    assert result.accuracy.exact
    wanted = scales.repeat(32, axis=1) * values - minimums.repeat(32, axis=1) * (-1 if negative else 1)
    got = result.matrix.dequantise().numpy()
    assert block_errors(wanted, got).max() < 2**-23
