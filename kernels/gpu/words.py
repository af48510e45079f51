"""Reading packed weights inside Triton kernels: 32-bit words of a tile to numbers.

A row tile of a matrix is a run of words [tiles along the reduction × words of a tile][16 rows]
(`kernels.layout`); word g of a row holds its inputs g · n … g · n + n - 1, n = 2, 4 or 8. Everything here is
told the format by `WeightFormat.number`.
"""

from __future__ import annotations

import triton
import triton.language as tl

BF16 = tl.constexpr(0)
INT8 = tl.constexpr(1)
INT4 = tl.constexpr(2)
TILE_ROWS = tl.constexpr(16)
TILE_COLS = tl.constexpr(32)
PANEL_ROWS = tl.constexpr(32)
BLOCK_GROUPS = tl.constexpr(8)
GROUP_BYTES = tl.constexpr(32)  # parameters of a tile's 16 groups; bf16 has none
SIDE_BYTES = tl.constexpr(64)  # an entry of int4's side table
# The bits of 2^23 as float32: with a whole number n < 2^23 in the mantissa it is 2^23 + n. Converting so
# costs an addition; the conversion instruction has a quarter of its rate or less. Kernels get it as an
# argument, `magic`: to mask bits and to set others is one instruction (LOP3) only if one of the two masks is
# not a constant.
MAGIC = 0x4B000000
_MAGIC_VALUE = tl.constexpr(8388608.0)


@triton.jit
def whole(bits: tl.tensor, magic: tl.tensor, BIAS: tl.constexpr) -> tl.tensor:
    """float32 of a whole number below 2^23, minus `BIAS`; exact."""
    return (bits | magic).to(tl.float32, bitcast=True) - (_MAGIC_VALUE + BIAS)


@triton.jit
def pair(
    words: tl.tensor, STEP: tl.constexpr, magic: tl.tensor, FORMAT: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Inputs 2 · STEP and 2 · STEP + 1 of each word, uint32, as float32, times their `pair_scales`.

    Groups' scales are not applied. Where a quantised value lies above other bits it is left there, a power of
    two too large, because shifting it down would cost an instruction for every weight.
    """
    if FORMAT == BF16:
        even = (words << 16).to(tl.float32, bitcast=True)
        odd = (words & 0xFFFF0000).to(tl.float32, bitcast=True)
    elif FORMAT == INT8:
        half = (words ^ 0x80808080) >> (16 * STEP)  # so that bytes are value + 128, 0 to 255
        even = whole(half & 0xFF, magic, 128.0)
        odd = whole(half & 0xFF00, magic, 32768.0)
    else:
        even = whole(words & (15 << (4 * STEP)), magic, 0.0)
        odd = whole((words >> 16) & (15 << (4 * STEP)), magic, 0.0)
    return even, odd


@triton.jit
def unscale_even(x: tl.tensor, STEP: tl.constexpr, FORMAT: tl.constexpr) -> tl.tensor:
    """What an even input is multiplied with so that the product with `pair`'s number is right."""
    if FORMAT == INT4:
        x = x * (1.0 / (1 << (4 * STEP)))
    return x


@triton.jit
def unscale_odd(x: tl.tensor, STEP: tl.constexpr, FORMAT: tl.constexpr) -> tl.tensor:
    """The same for the odd input after it."""
    if FORMAT == INT8:
        x = x * (1.0 / 256)
    elif FORMAT == INT4:
        x = x * (1.0 / (1 << (4 * STEP)))
    return x


@triton.jit
def as_words(address: tl.tensor) -> tl.tensor:
    """A pointer to bytes as one to 32-bit words."""
    return address.to(tl.pointer_type(tl.uint32))


@triton.jit
def as_halves(address: tl.tensor) -> tl.tensor:
    """A pointer to bytes as one to float16."""
    return address.to(tl.pointer_type(tl.float16))


@triton.jit
def group(
    scales: tl.tensor, factors: tl.tensor, row: tl.tensor, mask: tl.tensor, FORMAT: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """(Scale, offset) of groups, float32: a weight is scale · value - offset, which only INT4 has.

    `scales` are addresses of tiles' parameters, `factors` of their entries in the side table; with `row` they
    broadcast to the shape of `mask`.
    """
    if FORMAT == INT4:
        s = tl.load(scales + row, mask=mask, other=0).to(tl.float32)
        m = tl.load(scales + TILE_ROWS + row, mask=mask, other=0).to(tl.float32)
        d = tl.load(as_halves(factors) + row, mask=mask, other=0.0).to(tl.float32)
        e = tl.load(as_halves(factors) + TILE_ROWS + row, mask=mask, other=0.0).to(tl.float32)
        scale, offset = d * s, e * m
    else:
        scale = tl.load(as_halves(scales) + row, mask=mask, other=0.0).to(tl.float32)
        offset = tl.zeros([1, 1], tl.float32)
    return scale, offset
