"""Which way the experts of each format are multiplied.

The kernels can multiply quantised weights as they stand, with activations as they are or rounded to 8 bits,
or expand them to bf16 first, once for all tokens; a level may multiply bf16 weights with vectors or with
tiles. Which is faster depends on the processor, and on how many tokens an expert is given:
`kernels.tuning_probe` measures it, `kernels.tuning_choice` decides by the times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kernels.formats import WeightFormat


class Way(StrEnum):
    """How an expert's weights meet its tokens.

    AS_THEY_STAND: the weights as they are stored, activations unrounded (bf16 at the levels that multiply in
    bf16). EIGHT_BIT: the weights as they are stored, activations rounded to 8 bits, each 32 with a scale of
    their own. EXPANDED: the weights as bf16, for any number of tokens; at the level AMX in tiles.
    """

    AS_THEY_STAND = "as_they_stand"
    EIGHT_BIT = "eight_bit"
    EXPANDED = "expanded"


@dataclass(frozen=True)
class Ways:
    """What a level has for a format beside EXPANDED.

    `few_tokens`: the most tokens of AS_THEY_STAND; 0 where it is the same as EXPANDED. `eight_bit`: whether
    there is EIGHT_BIT.
    """

    few_tokens: int
    eight_bit: bool


@dataclass(frozen=True)
class FormatTuning:
    """How experts of one format are multiplied.

    Up to `few_tokens` tokens for an expert its weights are taken as they stand (as far as the level can, see
    `Ways`), for more they are expanded to bf16, or, where they are bf16, multiplied in tiles if the level has
    them. `few_eight_bit` and `many_eight_bit`: activations are rounded to 8 bits instead, but not up to
    `exact_tokens` tokens of the few; without effect for bf16 and on the portable level.
    """

    few_tokens: int
    few_eight_bit: bool = False
    many_eight_bit: bool = False
    exact_tokens: int = 0

    def __post_init__(self) -> None:
        if self.few_tokens < 0 or self.exact_tokens < 0:
            raise ValueError(f"there are no fewer than 0 tokens: {self}")

    def way(self, tokens: int) -> Way:
        """How `tokens` tokens for an expert are multiplied, where the level has that way."""
        if tokens > self.few_tokens:
            return Way.EIGHT_BIT if self.many_eight_bit else Way.EXPANDED
        return Way.EIGHT_BIT if self.few_eight_bit and tokens > self.exact_tokens else Way.AS_THEY_STAND

    @property
    def eight_bit(self) -> bool:
        """Whether any number of tokens is rounded to 8 bits."""
        return self.many_eight_bit or (self.few_eight_bit and self.exact_tokens < self.few_tokens)


@dataclass(frozen=True)
class Tuning:
    """How experts are multiplied. Above `panel_tokens` tokens for one expert work is divided by w2's rows."""

    formats: Mapping[WeightFormat, FormatTuning]
    panel_tokens: int

    def __post_init__(self) -> None:
        if set(self.formats) != set(WeightFormat) or self.panel_tokens < 0:
            raise ValueError(f"not a tuning of every format: {self}")

    def with_format(self, weight_format: WeightFormat, tuning: FormatTuning) -> Tuning:
        """The same but for one format."""
        return replace(self, formats={**self.formats, weight_format: tuning})
