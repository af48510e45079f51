"""Which way the experts of each format are multiplied, and measuring which is the fastest on this machine.

The kernels can multiply quantised weights as they stand, with activations as they are or rounded to 8 bits,
or expand them to bf16 first, once for all tokens; a level may multiply bf16 weights with vectors or with
tiles. Which is faster depends on the processor, and on how many tokens an expert is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.formats import WeightFormat


@dataclass(frozen=True)
class FormatTuning:
    """How experts of one format are multiplied.

    Up to `few_tokens` tokens for an expert its weights are taken as they stand, for more they are expanded to
    bf16, or, where they are bf16, multiplied in tiles if the level has them. `few_eight_bit` and
    `many_eight_bit`: activations are rounded to 8 bits, each 32 with a scale of their own, and weights taken
    as they stand; without effect for bf16 and on the portable level.
    """

    few_tokens: int
    few_eight_bit: bool = False
    many_eight_bit: bool = False

    def __post_init__(self) -> None:
        if self.few_tokens < 0:
            raise ValueError(f"few_tokens cannot be {self.few_tokens}")


@dataclass(frozen=True)
class Tuning:
    """How experts are multiplied. Above `panel_tokens` tokens for an expert a call is divided by w2's rows."""

    formats: Mapping[WeightFormat, FormatTuning]
    panel_tokens: int

    def __post_init__(self) -> None:
        if set(self.formats) != set(WeightFormat) or self.panel_tokens < 0:
            raise ValueError(f"not a tuning of every format: {self}")
