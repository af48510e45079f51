"""A language model that says what a test tells it to, and remembers exactly what it has read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from engine.events import ExpertHits, Phase

VOCABULARY = 50
EOS = 49
FIRST_GLYPH = 0x4E00  # Chinese characters: no special ones among the next 20,000


class ScriptedCache:
    """Keeps the tokens themselves in place of keys and values."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.tokens: list[int] = []
        self.nbytes = capacity

    @property
    def length(self) -> int:
        return len(self.tokens)

    def truncate(self, length: int) -> None:
        assert 0 <= length <= self.length
        del self.tokens[length:]


class ScriptedModel:
    """`script(history)` is the next token after all in the cache; `reads` lists what each forward read."""

    def __init__(self, script: Callable[[list[int]], int]) -> None:
        self.script = script
        self.reads: list[list[int]] = []
        self.hits = ExpertHits.zeros(1, 2)

    def new_cache(self, capacity: int) -> Any:
        self.cache = ScriptedCache(capacity)
        return self.cache

    def forward(
        self,
        token_ids: torch.Tensor,
        cache: Any,
        *,
        logits: str = "last",
        phase: Phase | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> torch.Tensor | None:
        check()
        assert cache.length + len(token_ids) <= cache.capacity
        self.reads.append(token_ids.tolist())
        cache.tokens += token_ids.tolist()
        counts = self.hits.counts.copy()
        counts[phase, 0, 1, 2] += 1
        self.hits = ExpertHits(counts)
        if logits == "none":
            return None
        row = torch.zeros(1, VOCABULARY)
        row[0, self.script(cache.tokens)] = 5.0
        return row


class LetterStream:
    """Token 1 is "a", 2 is "b", …; token 30 is half of "é" and 31 its other half; 32 is a long text."""

    def __init__(self) -> None:
        self._half = False

    def push(self, token: int) -> str:
        if token == 30:
            self._half = True
            return ""
        if token == 31:
            self._half = False
            return "é"
        return "the end " if token == 32 else chr(96 + token)

    def flush(self) -> str:
        return "\N{REPLACEMENT CHARACTER}" if self._half else ""

    def fork(self) -> LetterStream:
        return copy.copy(self)


class GlyphStream:
    """Every token is one glyph of its own, so that a text tells its tokens (`tokens_in`)."""

    def push(self, token: int) -> str:
        return chr(FIRST_GLYPH + token)

    def flush(self) -> str:
        return ""

    def fork(self) -> GlyphStream:
        return GlyphStream()


def tokens_in(text: str) -> list[int]:
    """The tokens that a GlyphStream made a text of."""
    return [ord(glyph) - FIRST_GLYPH for glyph in text]


class ManualClock:
    """A clock that moves on by `step` seconds at each look."""

    def __init__(self, step: float = 0.0) -> None:
        self.now = 100.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now
