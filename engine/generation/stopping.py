"""What ends an answer early: stop strings, wherever token borders fall, and a clear rule for loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LOOP_COPIES = 4
LOOP_TOKENS = 64
LOOP_PERIOD = 128


class StopStrings:
    """Finds stop strings in text that arrives in parts, and keeps them out of what is shown.

    The answer ends where the first stop string is complete (of two that end at the same place, the longer
    counts). Text is held back only while it could still become a stop string.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""

    def push(self, text: str) -> tuple[str, bool]:
        """Take more text; return what may be shown, and whether a stop string ended the answer."""
        text = self._held + text
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        if found:
            self._held = ""
            _, start = min(found)
            return text[:start], True
        held = max((_overlap(text, stop) for stop in self._stops), default=0)
        shown = text[: len(text) - held]
        self._held = text[len(shown) :]
        return shown, False

    def flush(self) -> str:
        """Return what was held back, when the answer ends for another reason."""
        text, self._held = self._held, ""
        return text


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`, but not all of it."""
    for length in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:length]):
            return length
    return 0


class LoopDetector:
    """Tells when an answer repeats itself.

    The rule: the answer's last tokens are `LOOP_COPIES` or more copies, one after another, of a block of at
    most `LOOP_PERIOD` tokens, and the copies are together at least `LOOP_TOKENS` long. So four equal
    paragraphs are a loop, and so is one word said 64 times; a row of dashes in a table is not. Costs the
    same for every token.
    """

    def __init__(self) -> None:
        self._recent = np.full(LOOP_PERIOD, -1, dtype=np.int64)  # the last tokens, newest first
        self._equal = np.zeros(
            LOOP_PERIOD, dtype=np.int64
        )  # [p - 1]: how long token[i] == token[i - p] has held
        periods = np.arange(1, LOOP_PERIOD + 1)
        self._enough = np.maximum((LOOP_COPIES - 1) * periods, LOOP_TOKENS - periods)

    def push(self, token: int) -> bool:
        """Take the next token; return whether the answer is now in a loop."""
        self._equal = np.where(self._recent == token, self._equal + 1, 0)
        self._recent[1:] = self._recent[:-1]
        self._recent[0] = token
        return bool((self._equal >= self._enough).any())
