"""When the tokens of an answer came, in few enough points to be saved with every answer. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

POINTS = 96  # at most, whatever the answer's length; a plot in a panel shows no more
_DIGITS = 4  # tenths of a millisecond: the clock of a plot


@dataclass(frozen=True)
class Pace:
    """`seconds[i]` after the first token, `(i + 1) * stride` more tokens were there."""

    stride: int = 1
    seconds: tuple[float, ...] = ()

    def rates(self, most: int = POINTS) -> tuple[float, ...]:
        """Tokens per second, stretch by stretch, in at most `most` stretches of equally many tokens."""
        together = max(1, -(-len(self.seconds) // max(1, most)))
        ends = self.seconds[together - 1 :: together]
        starts = (0.0, *ends)
        tokens = self.stride * together
        return tuple(
            tokens / max(end - start, 10.0**-_DIGITS) for start, end in zip(starts, ends, strict=False)
        )


class PaceMeter:
    """Keeps the times of tokens; each time the points are full, every second one goes."""

    def __init__(self) -> None:
        self._stride = 1
        self._count = 0
        self._seconds: list[float] = []

    def token(self, seconds: float) -> None:
        """Another token came, `seconds` after the first."""
        self._count += 1
        if self._count % self._stride:
            return
        if len(self._seconds) == POINTS:
            del self._seconds[::2]
            self._stride *= 2
            if self._count % self._stride:
                return
        self._seconds.append(round(seconds, _DIGITS))

    def snapshot(self) -> Pace:
        """The points so far."""
        return Pace(self._stride, tuple(self._seconds))
