"""The figures of one generation while it runs. The clock is given, so tests need not wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from engine.accounting import TimeSplit
from engine.events import ExpertHits, GenerationStats, Prediction
from engine.pace import PaceMeter

_NOW_WINDOW = 1.0  # seconds that "now" looks back


class Meter:
    """Collects times and counts into GenerationStats.

    `hits` returns the running total of expert executions, `time_split` that of where decode steps' time went;
    a generation's own are the differences to its start. `prediction` is how well layers were foretold lately.
    `started` is when the user asked, on the same `clock` (seconds).
    """

    def __init__(
        self,
        clock: Callable[[], float],
        started: float,
        hits: Callable[[], ExpertHits],
        context_length: int,
        time_split: Callable[[], TimeSplit] = TimeSplit,
        prediction: Callable[[], Prediction] = Prediction,
    ) -> None:
        self._clock = clock
        self._started = started
        self._hits = hits
        self._hits_before = hits()
        self._time_split = time_split
        self._time_before = time_split()
        self._prediction = prediction
        self._context_length = context_length
        self._prompt = self._reused = 0
        self._prefill_started = self._prefill_ended = started
        self._first = self._last = 0.0
        self._generated = 0
        self._recent: deque[float] = deque()
        self._pace = PaceMeter()

    def prompt_begins(self, total: int, reused: int) -> None:
        """The prompt's tokens are known; reading those that are not `reused` begins."""
        self._prompt, self._reused = total, reused
        self._prefill_started = self._prefill_ended = self._clock()

    def prompt_read(self) -> None:
        """A part of the prompt was read."""
        self._prefill_ended = self._clock()

    def token(self) -> None:
        """A token of the answer is known."""
        self._last = self._clock()
        if not self._generated:
            self._first = self._last
        else:
            self._pace.token(self._last - self._first)
        self._generated += 1
        self._recent.append(self._last)
        while len(self._recent) > 2 and self._last - self._recent[0] > _NOW_WINDOW:
            self._recent.popleft()

    @property
    def generated(self) -> int:
        """Tokens of the answer so far."""
        return self._generated

    def stats(self, context_used: int, seed: int | None) -> GenerationStats:
        """The figures so far."""
        prefill = self._prefill_ended - self._prefill_started
        decode = self._last - self._first
        recent = self._recent[-1] - self._recent[0] if self._recent else 0.0
        prediction = self._prediction()
        return GenerationStats(
            prompt_tokens=self._prompt,
            reused_tokens=self._reused,
            generated_tokens=self._generated,
            time_to_first_token=self._first - self._started if self._generated else 0.0,
            prefill_seconds=prefill,
            decode_seconds=decode,
            tokens_per_second=_rate(self._generated - 1, decode),
            tokens_per_second_now=_rate(len(self._recent) - 1, recent),
            prefill_tokens_per_second=_rate(self._prompt - self._reused, prefill),
            context_used=context_used,
            context_length=self._context_length,
            seed=seed,
            hits=ExpertHits(self._hits().counts - self._hits_before.counts),
            time=self._time_split().since(self._time_before),
            prediction_error=prediction.error,
            refits=prediction.refits,
            pace=self._pace.snapshot(),
        )


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 and count > 0 else 0.0
