"""Decides by measured times how experts of a format are multiplied. Only numbers here: nothing is timed.

As tokens increase, what a way does once for all of them matters less and what it does for each matters more.
So the ways follow one another: weights as they stand for few tokens, then activations of 8 bits, then
expansion; any of them may be left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from kernels.tuning import FormatTuning, Way

# Times in seconds by token count.
Times = Mapping[int, float]

# Rounding costs accuracy, so its time must be at most this share of the best time without. With every number
# of tokens rounded (benchmarks/perplexity.py, AVX512_BF16) the starter's perplexity against bf16 is +0.22 %
# ± 0.15 in int8 (+0.03 % without rounding) and +0.04 % ± 0.14 in int4 (-0.01 %).
EIGHT_BIT_SHARE = 0.9


def choose_ways(times: Mapping[Way, Times]) -> FormatTuning:
    """The fastest sequence of ways over all measured token counts.

    `times[Way.EXPANDED]` has every count, the others those that the way was measured at. What is compared is
    the sum of the logarithms, so that each count has the same say; a time with activations of 8 bits counts
    as if it took 1/0.9 of it. Of equals the one that rounds less is taken, then the one that expands less.
    """
    return min(_candidates(times), key=lambda candidate: candidate[0])[1]


def eight_bit_speedup(times: Mapping[Way, Times], tuning: FormatTuning) -> float:
    """How much faster rounding makes the counts that `tuning` rounds (geometric mean); 1 without any.

    Compared with what `choose_ways` takes without EIGHT_BIT.
    """
    exact_times: dict[Way, Times] = {way: known for way, known in times.items() if way is not Way.EIGHT_BIT}
    exact = choose_ways(exact_times)
    rounded = [tokens for tokens in times[Way.EXPANDED] if tuning.way(tokens) is Way.EIGHT_BIT]
    if not rounded:
        return 1.0
    logs = [math.log(times[exact.way(n)][n] / times[Way.EIGHT_BIT][n]) for n in rounded]
    return math.exp(sum(logs) / len(logs))


def choose_panel_tokens(by_panels: Times, by_rows: Times) -> int:
    """Up to how many tokens dividing by panels is the faster: one of the counts, or one less than the first.

    Both have the same counts. Compared as in `choose_ways`; of equals the division by panels is taken.
    """
    counts = sorted(by_panels)

    def cost(panels: int) -> float:
        chosen = [(by_panels if place < panels else by_rows)[n] for place, n in enumerate(counts)]
        return sum(map(math.log, chosen))

    panels = min(range(len(counts), -1, -1), key=cost)
    return counts[panels - 1] if panels else counts[0] - 1


def _candidates(times: Mapping[Way, Times]) -> Iterator[tuple[tuple[float, int, int], FormatTuning]]:
    """Every sequence of ways with the time of each at hand: (cost, counts rounded, expanded), tuning."""
    counts = sorted(times[Way.EXPANDED])
    for few in range(len(counts) + 1):
        for end in range(few, len(counts) + 1):
            ways = [
                *[Way.AS_THEY_STAND] * few,
                *[Way.EIGHT_BIT] * (end - few),
                *[Way.EXPANDED] * (len(counts) - end),
            ]
            if all(n in times.get(way, {}) for way, n in zip(ways, counts, strict=True)):
                cost = 0.0
                for way, n in zip(ways, counts, strict=True):
                    cost += math.log(times[way][n] / (EIGHT_BIT_SHARE if way is Way.EIGHT_BIT else 1))
                yield (cost, end - few, len(counts) - end), _tuning([0, *counts], few, end)


def _tuning(counts: list[int], few: int, end: int) -> FormatTuning:
    """Weights as they stand up to counts[few], activations of 8 bits up to counts[end], then expansion."""
    if few == end:
        return FormatTuning(counts[few])
    if end == len(counts) - 1:
        return FormatTuning(counts[few], many_eight_bit=True)
    return FormatTuning(counts[end], few_eight_bit=True, exact_tokens=counts[few])
