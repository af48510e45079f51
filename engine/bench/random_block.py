"""Packed experts with random weights of a usual size, made without quantising anything."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kernels.formats import WeightFormat
from kernels.shape import PANEL_ROWS, TILE_COLS, ExpertShape

SPREAD = 0.02  # root mean square of the weights, about Mixtral's

# bf16: any sign and mantissa with the exponent of 2^-6: magnitudes even in [2^-6, 2^-5), 0.024 r.m.s.
_BF16_MASK, _BF16_EXPONENT = -0x7F81, (127 - 6) << 7  # sign and 7 bits of mantissa; exponent
_INT8_RMS = 73.9  # of all bytes from -128 to 127
_INT4_MEAN, _INT4_SPREAD = 7.5, 4.61  # of all values from 0 to 15
_INT4_SCALES = (96, 256)  # as of a quantiser, whose largest scale of 8 is near 255
_INT4_SCALE_MEAN = 175.5


def random_block(shape: ExpertShape, generator: torch.Generator) -> Tensor:
    """A packed expert, uint8 [shape.nbytes], with weights around zero of a root mean square near SPREAD.

    Values are random bits; group parameters and the side table are numbers as a quantiser writes them.
    Raises ValueError for sizes that are not multiples of 32: padding would have to be zero.
    """
    if shape.hidden % TILE_COLS or shape.intermediate % PANEL_ROWS:
        raise ValueError(f"{shape.hidden} × {shape.intermediate} is not a multiple of 32")
    if shape.format is WeightFormat.BF16:
        return random_bf16(shape.nbytes // 2, generator).view(torch.uint8)
    tiles = 6 * shape.k_tiles  # of a panel
    panels = torch.empty(shape.panels, shape.panel_nbytes, dtype=torch.uint8)
    split = tiles * shape.format.tile_nbytes
    panels[:, :split] = _random_bytes(shape.panels * split, generator).view(shape.panels, split)
    groups = shape.panels * tiles * 16
    if shape.format is WeightFormat.INT8:
        scales = _around(SPREAD / _INT8_RMS, groups, generator).view(torch.uint8)
        panels[:, split:] = scales.view(shape.panels, -1)
        return panels.flatten()
    # A group's minimum equals its scale, and e is 7.5 d: then the mean of 0 to 15 becomes the weight 0.
    levels = torch.randint(*_INT4_SCALES, (groups // 16, 1, 16), dtype=torch.uint8, generator=generator)
    panels[:, split:] = levels.expand(-1, 2, -1).reshape(shape.panels, -1)
    pairs = shape.side_nbytes // 64
    d = _around(SPREAD / _INT4_SPREAD / _INT4_SCALE_MEAN, pairs * 16, generator).view(pairs, 1, 16)
    side = torch.cat((d, (d.float() * _INT4_MEAN).half()), dim=1)
    return torch.cat((panels.flatten(), side.flatten().view(torch.uint8)))


def random_bf16(count: int, generator: torch.Generator) -> Tensor:
    """bf16 [count] around zero with a root mean square near SPREAD, as fast as random bits are drawn."""
    words = _random_bytes(-(-count // 4) * 8, generator).view(torch.int16)
    return words.bitwise_and_(_BF16_MASK).bitwise_or_(_BF16_EXPONENT).view(torch.bfloat16)[:count]


def fill_experts(
    arena: Tensor,
    shape: ExpertShape,
    count: int,
    generator: torch.Generator,
    before_each: Callable[[int], None],
) -> list[Tensor]:
    """`count` packed experts in uint8 `arena`, one after the other: one random expert and its copies.

    Copies lie in memory of their own, which is all that matters to caches. `before_each` hears the number of
    experts that are done, and may raise: new memory can come slowly (250 MB/s in a busy virtual machine).
    """
    block = random_block(shape, generator)
    experts = arena[: count * shape.nbytes].view(count, shape.nbytes)
    for done, expert in enumerate(experts):
        before_each(done)
        expert.copy_(block)
    return list(experts)


def _random_bytes(count: int, generator: torch.Generator) -> Tensor:
    """Random bits, drawn 64 at a time (drawing bytes takes eight times as long). `count`: a multiple of 8."""
    words = torch.empty(count // 8, dtype=torch.int64)
    return words.random_(-(2**63), None, generator=generator).view(torch.uint8)


def _around(mean: float, count: int, generator: torch.Generator) -> Tensor:
    """float16 numbers up to a quarter above and below `mean`, of either sign: [count]."""
    size = mean * (0.75 + 0.5 * torch.rand(count, generator=generator))
    sign = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    return (size * sign).half()
