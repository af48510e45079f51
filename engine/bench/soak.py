"""Many conversations one after the other: whether memory grows or speed falls over thousands of tokens."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from engine.bench.driver import Driver
from engine.bench.model_subject import LoadedSubject
from engine.progress import CancelToken, Progress, ProgressCallback

CONVERSATIONS = 40
# Prompts in turn, as shares of the context; the last leaves room for half of a conversation's tokens, so that
# the context is full in its middle and a new conversation begins. A tenth of 40 conversations is one round.
_PROMPTS = (0.0, 0.25, 0.5, 1.0)
_SHORT = 16  # tokens of the shortest prompts


@dataclass(frozen=True)
class SoakFigures:
    """What happened over `tokens` tokens in `conversations` conversations; `full` filled the context.

    Bytes that RAM and the GPU's allocator grew by after the first tenth; seconds of a token in the first and
    in the last tenth (medians).
    """

    tokens: int
    conversations: int
    full: int
    ram_growth: int
    gpu_growth: int
    first: float
    last: float

    @property
    def slowdown(self) -> float:
        """The last tenth's time over the first's: 1.02 is 2 % slower."""
        return self.last / self.first

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"slowdown": self.slowdown}


def soak(
    subject: LoadedSubject, driver: Driver, tokens: int, progress: ProgressCallback, cancel: CancelToken
) -> SoakFigures:
    """Write `tokens` tokens, at least one in each conversation. Raises Cancelled between two."""
    share = max(1, tokens // CONVERSATIONS)
    seconds: list[float] = []
    full = 0
    ram = gpu = 0
    for number in range(CONVERSATIONS):
        progress(Progress("Many conversations", len(seconds), share * CONVERSATIONS, "tokens"))
        if number == CONVERSATIONS // 10:
            ram, gpu = _memory(subject)
        driver.read(_prompt(number, share, driver.session.capacity))
        left = share
        while left:
            room = driver.session.capacity - driver.session.used
            if room == 0:
                full += 1
                driver.read(min(_SHORT, driver.session.capacity - 1))
                continue
            work = driver.decode(min(left, room))
            seconds += work.seconds
            left -= len(work.seconds)
    ram_now, gpu_now = _memory(subject)
    tenth = max(1, len(seconds) // 10)
    first, last = statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
    return SoakFigures(
        len(seconds), CONVERSATIONS, full, max(0, ram_now - ram), max(0, gpu_now - gpu), first, last
    )


def _prompt(number: int, share: int, capacity: int) -> int:
    """Tokens of a conversation's prompt."""
    wanted = _PROMPTS[number % len(_PROMPTS)]
    if wanted == 1.0:
        return max(1, capacity - max(1, share // 2))
    return max(min(_SHORT, capacity - 1), min(int(wanted * capacity), capacity - share))


def _memory(subject: LoadedSubject) -> tuple[int, int]:
    figures = subject.watch.figures(subject.held_bytes)
    return figures.ram_now, subject.watch.gpu_now()
