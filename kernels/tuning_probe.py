"""Measures on this machine which ways of multiplying experts are the fastest: the times for `tuning_choice`.

Every way is timed on real experts in rotation, so that no cache serves weights that a model would read from
memory, and the ways take turns call by call: other programs disturb all of them alike.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob
from kernels.shape import ExpertShape
from kernels.tuning import FormatTuning, Tuning, Way
from kernels.tuning_choice import choose_panel_tokens, choose_ways, eight_bit_speedup

TOKEN_COUNTS = (1, 2, 4, 8, 16, 32, 64)
PANEL_COUNTS = (4, 8, 16, 32)
SECONDS = 0.2  # for each token count: some hundred calls of the starter's experts
_LEAST_ROUNDS = 4
_LONG_SECONDS = 2.0  # after which two rounds are enough
_LONG_ROUND = 1.0  # seconds of a round after which larger counts are left out
_EVERY_TOKEN = 1 << 20  # more than any call has
_ROUTING_WEIGHT = 1e-3  # the outputs of all calls are added up

Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class TuningResult:
    """`tuning` is the pool's with the chosen ways for one format, `chosen`, and the chosen division.

    `times`: way to token count to seconds of one expert, empty where there is only one way. `by_panels` and
    `by_rows`: token count to seconds with the chosen ways. `speedup`: of rounding to 8 bits where it is
    chosen, 1 otherwise.
    """

    tuning: Tuning
    chosen: FormatTuning
    times: Mapping[Way, Mapping[int, float]]
    by_panels: Mapping[int, float]
    by_rows: Mapping[int, float]
    speedup: float


def measure_tuning(
    pool: CpuPool,
    shape: ExpertShape,
    blocks: Sequence[Tensor],
    *,
    experts: int = 2,
    eight_bit: bool = True,
    most_tokens: int = TOKEN_COUNTS[-1],
    seconds: float = SECONDS,
    before_round: Callable[[float], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> TuningResult:
    """Time the ways of `shape.format` and choose; the pool has the tuning that it had before in the end.

    `blocks`: packed experts, as many as the caches cannot hold; `experts` of them run in a call, as in a
    layer. `eight_bit`: whether activations may be rounded. `most_tokens`: of an expert; token counts above
    the first that reaches it are not measured. `seconds`: for each token count, about; takes two to three
    seconds as it is, longer only where single calls take long (then large counts are left out).
    `before_round` hears the share that is done, and may raise to leave.
    """
    before = pool.tuning
    probe = _Probe(pool, shape, blocks, experts, most_tokens, seconds, before_round, clock)
    try:
        times = probe.ways(_tunings(pool, shape, eight_bit))
        chosen = choose_ways(times) if times else before.formats[shape.format]
        tuning = before.with_format(shape.format, chosen)
        by_panels, by_rows = probe.divisions(tuning)
    finally:
        pool.tuning = before
    tuning = replace(tuning, panel_tokens=choose_panel_tokens(by_panels, by_rows))
    speedup = eight_bit_speedup(times, chosen) if times else 1.0
    return TuningResult(tuning, chosen, times, by_panels, by_rows, speedup)


def _tunings(pool: CpuPool, shape: ExpertShape, eight_bit: bool) -> dict[Way, tuple[int, Tuning]]:
    """For every way of the format the most tokens that it takes, and the tuning that makes it the way."""
    ways, before = pool.ways(shape.format), pool.tuning
    choices = {Way.EXPANDED: (_EVERY_TOKEN, FormatTuning(0))}
    if ways.few_tokens:
        choices[Way.AS_THEY_STAND] = (ways.few_tokens, FormatTuning(ways.few_tokens))
    if ways.eight_bit and eight_bit:
        choices[Way.EIGHT_BIT] = (_EVERY_TOKEN, FormatTuning(0, many_eight_bit=True))
    return {way: (most, before.with_format(shape.format, each)) for way, (most, each) in choices.items()}


def _counts(counts: Sequence[int], most: int) -> tuple[int, ...]:
    """The ascending counts up to the first that reaches `most`."""
    return tuple(count for place, count in enumerate(counts) if not place or counts[place - 1] < most)


class _Probe:
    """Calls of experts in turn, and what they take."""

    def __init__(
        self,
        pool: CpuPool,
        shape: ExpertShape,
        blocks: Sequence[Tensor],
        experts: int,
        most_tokens: int,
        seconds: float,
        before_round: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        self._pool, self._shape = pool, shape
        self._turns = itertools.cycle(blocks)
        self._experts = min(experts, len(blocks))
        self._seconds, self._before_round, self._clock = seconds, before_round, clock
        self._done = 0  # of the steps below
        self._token_counts = _counts(TOKEN_COUNTS, most_tokens)
        self._panel_counts = _counts(PANEL_COUNTS, most_tokens)
        self._steps = len(self._token_counts) + len(self._panel_counts)

    def ways(self, tunings: Mapping[Way, tuple[int, Tuning]]) -> dict[Way, dict[int, float]]:
        """Seconds of one expert by way and token count; nothing where there is only one way."""
        times: dict[Way, dict[int, float]] = {way: {} for way in tunings}
        for tokens in self._token_counts if len(tunings) > 1 else ():
            usable = {way: tuning for way, (most, tuning) in tunings.items() if tokens <= most}
            found = self._interleave(usable, tokens)
            for way, value in found.items():
                times[way][tokens] = value
            if sum(found.values()) * self._experts > _LONG_ROUND:
                break
        self._done = len(self._token_counts)
        return times if len(tunings) > 1 else {}

    def divisions(self, tuning: Tuning) -> tuple[dict[int, float], dict[int, float]]:
        """Seconds of one expert by token count: divided by panels, and by rows."""
        both = {"panels": replace(tuning, panel_tokens=_EVERY_TOKEN), "rows": replace(tuning, panel_tokens=0)}
        by_panels: dict[int, float] = {}
        by_rows: dict[int, float] = {}
        for tokens in self._panel_counts:
            found = self._interleave(both, tokens)
            by_panels[tokens], by_rows[tokens] = found["panels"], found["rows"]
            if sum(found.values()) * self._experts > _LONG_ROUND:
                break
        return by_panels, by_rows

    def _interleave(self, tunings: Mapping[Name, Tuning], tokens: int) -> dict[Name, float]:
        """The lower quartile of each tuning's times, for one expert; they take turns call by call."""
        x, out = torch.randn(tokens, self._shape.hidden), torch.zeros(tokens, self._shape.hidden)
        rows, weights = torch.arange(tokens, dtype=torch.int32), torch.full((tokens,), _ROUTING_WEIGHT)
        times: dict[Name, list[float]] = {name: [] for name in tunings}
        start = self._clock()
        for rounds in itertools.count():
            elapsed = self._clock() - start
            long = rounds >= 2 and elapsed >= _LONG_SECONDS
            if long or (rounds >= _LEAST_ROUNDS and elapsed >= self._seconds):
                break
            self._before_round((self._done + min(1.0, elapsed / self._seconds)) / self._steps)
            for name, tuning in tunings.items():
                self._pool.tuning = tuning
                jobs = [ExpertJob(next(self._turns), rows, weights) for _ in range(self._experts)]
                begin = self._clock()
                self._pool.run_experts(x, jobs, self._shape, out)
                times[name].append(self._clock() - begin)
        self._done += 1
        return {name: sorted(each)[(len(each) - 1) // 4] / self._experts for name, each in times.items()}
