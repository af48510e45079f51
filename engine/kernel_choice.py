"""Which kernels a calibration chose for a model's experts: kept in its profile, applied to a pool, in words.

Torch-free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kernels.formats import WeightFormat
from kernels.isa import Isa
from kernels.tuning import FormatTuning, Tuning, Way

if TYPE_CHECKING:
    from kernels.cpu import CpuPool

_MOST_TOKENS = 1 << 20  # in a file: more than any call has


@dataclass(frozen=True)
class KernelChoice:
    """How experts of one format are multiplied on one instruction set level, and the times it was chosen by.

    `panel_tokens`: see `kernels.tuning.Tuning`. `speedup`: of rounding activations to 8 bits, over the counts
    for which it was chosen (1: for none). `seconds`: way to token count to seconds of one expert; empty where
    there is only one way.
    """

    isa: Isa
    format: WeightFormat
    tuning: FormatTuning
    panel_tokens: int
    speedup: float = 1.0
    seconds: Mapping[Way, Mapping[int, float]] = field(default_factory=dict)

    def applied(self, tuning: Tuning, isa: Isa, *, exact: bool) -> Tuning:
        """`tuning` of a pool at level `isa` with this choice for its format.

        Unchanged for another level, whose times are others, and where `exact` forbids a choice that rounds
        activations.
        """
        if isa is not self.isa or (exact and self.tuning.eight_bit):
            return tuning
        return replace(tuning.with_format(self.format, self.tuning), panel_tokens=self.panel_tokens)

    def text(self) -> str:
        """One sentence: "Kernels: 8-bit activations for 1–16 tokens (1.9 × faster), tiles above."."""
        if not self.seconds:
            return "Kernels: the same for any number of tokens."
        parts = []
        first = 1
        for way, last in self._ranges():
            if last is None:
                where = "above" if first > 1 else "for any number of tokens"
            elif first > 1:
                where = f"for {_span(first, last)}"
            else:
                where = f"for {_span(first, last)} token{'s' if last > 1 else ''}"
            gain = f" ({self.speedup:.1f} × faster)" if way is Way.EIGHT_BIT else ""
            parts.append(f"{self._words(way)} {where}{gain}")
            first = (last or 0) + 1
        return f"Kernels: {', '.join(parts)}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "isa": str(self.isa),
            "format": str(self.format),
            "few_tokens": self.tuning.few_tokens,
            "few_eight_bit": self.tuning.few_eight_bit,
            "many_eight_bit": self.tuning.many_eight_bit,
            "exact_tokens": self.tuning.exact_tokens,
            "panel_tokens": self.panel_tokens,
            "speedup": self.speedup,
            "seconds": {
                str(way): {str(tokens): value for tokens, value in times.items()}
                for way, times in self.seconds.items()
            },
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> KernelChoice:
        """Read what `to_dict` wrote. Raises KeyError, TypeError, AttributeError or ValueError otherwise."""
        tuning = FormatTuning(
            _tokens(data["few_tokens"]),
            _flag(data["few_eight_bit"]),
            _flag(data["many_eight_bit"]),
            _tokens(data["exact_tokens"]),
        )
        return KernelChoice(
            Isa(data["isa"]),
            WeightFormat(data["format"]),
            tuning,
            _tokens(data["panel_tokens"]),
            _positive(data["speedup"]),
            {
                Way(way): {int(tokens): _positive(value) for tokens, value in times.items()}
                for way, times in data["seconds"].items()
            },
        )

    def _ranges(self) -> Iterator[tuple[Way, int | None]]:
        """Each way with the last token count that it is for; the last way is for all above (None)."""
        tuning = self.tuning
        last_way = tuning.way(_MOST_TOKENS + 1)
        ends = {min(tuning.exact_tokens, tuning.few_tokens), tuning.few_tokens}
        counts = sorted(end for end in ends if end)
        for place, count in enumerate(counts):
            following = tuning.way(counts[place + 1]) if place + 1 < len(counts) else last_way
            if tuning.way(count) is not following:
                yield tuning.way(count), count
        yield last_way, None

    def _words(self, way: Way) -> str:
        if way is Way.EIGHT_BIT:
            return "8-bit activations"
        if way is Way.EXPANDED:
            return "tiles" if self.isa is Isa.AMX else "weights expanded to bf16"
        return "vectors" if self.format is WeightFormat.BF16 else "weights as they are"


def apply_kernels(kernels: KernelChoice | None, pool: CpuPool, *, exact: bool) -> None:
    """Let an idle pool use a choice, as far as `KernelChoice.applied` allows it; None changes nothing."""
    if kernels is not None:
        pool.tuning = kernels.applied(pool.tuning, pool.isa, exact=exact)


def _span(first: int, last: int) -> str:
    return f"{first}–{last}" if last > first else str(last)


def _tokens(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
        raise ValueError(f"a number of tokens in the place of {value!r}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f"true or false in the place of {value!r}")
    return value


def _positive(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"a positive number in the place of {value!r}")
    return number
