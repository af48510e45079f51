"""How fast a long operation goes and how long it will still take, from its progress. No Qt."""

from __future__ import annotations

from collections import deque

from engine.progress import Progress

WINDOW_SECONDS = 15.0  # long enough to be calm, short enough to follow a connection that changes
SETTLE_SECONDS = 2.0  # no figure before this: the first ones would be wild


class RateMeter:
    """Keeps the last seconds of an operation's progress. Times are those of a monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()
        self._key: tuple[float, str] | None = None
        self._left = 0.0

    def add(self, progress: Progress, now: float) -> None:
        """Take in where the operation is at the time `now`; another kind of progress starts afresh."""
        key = (progress.total, progress.unit)
        if key != self._key or (self._samples and progress.done < self._samples[-1][1]):
            self._samples.clear()
            self._key = key
        self._samples.append((now, progress.done))
        while len(self._samples) > 2 and now - self._samples[0][0] > WINDOW_SECONDS:
            self._samples.popleft()
        self._left = max(0.0, progress.total - progress.done)

    @property
    def rate(self) -> float | None:
        """Units per second over the last seconds; None while it is too early to say, or nothing moves."""
        if len(self._samples) < 2:
            return None
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        if end - start < SETTLE_SECONDS or last <= first:
            return None
        return (last - first) / (end - start)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the end at this rate; None while unknown."""
        rate = self.rate
        if rate is None or self._key is None or self._key[0] <= 0:
            return None
        return self._left / rate
