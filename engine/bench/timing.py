"""Time single calls: the best and the median of many, and whether a longer call is worth its time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.progress import CancelToken

_LEAST_CALLS = 3
_LONG = 3.0  # seconds after which fewer than _LEAST_CALLS calls are enough


@dataclass(frozen=True)
class Times:
    """The best and the median of `calls` calls, in seconds."""

    best: float
    median: float
    calls: int

    def over(self, parts: int) -> Times:
        """The times of one of `parts` equal parts of the call."""
        return Times(self.best / parts, self.median / parts, self.calls)


def time_calls(
    call: Callable[[], object],
    seconds: float,
    cancel: CancelToken,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Time calls for `seconds`, at least three; one that took long by itself is enough.

    A first call is not counted, as it wakes threads and touches new memory, unless it alone takes the time
    of all. Raises Cancelled between two calls.
    """
    cancel.raise_if_cancelled()
    begun = clock()
    call()
    first = clock() - begun
    if first >= max(seconds, _LONG):
        return Times(first, first, 1)
    times: list[float] = []
    start = clock()
    while True:
        cancel.raise_if_cancelled()
        begin = clock()
        call()
        end = clock()
        times.append(end - begin)
        enough = len(times) >= _LEAST_CALLS or end - begun >= _LONG
        if enough and end - start >= seconds:
            return Times(min(times), statistics.median(times), len(times))


def expected_seconds(measured: Mapping[int, float], tokens: int) -> float:
    """How long a call of `tokens` tokens takes at least, from the times of fewer: token count to seconds.

    A line through the two largest counts; one time alone is its own lower bound, as reading the weights takes
    the same for any number of tokens. 0 if nothing is known.
    """
    known = sorted(count for count in measured if count < tokens)
    if not known:
        return 0.0
    last = known[-1]
    if len(known) == 1:
        return measured[last]
    before = known[-2]
    slope = max(0.0, (measured[last] - measured[before]) / (last - before))
    return measured[last] + slope * (tokens - last)
