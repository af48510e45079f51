"""What a model has read so far: the KV cache with the tokens in it, and its reuse from turn to turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch

from engine.errors import GenerationError, PromptTooLongError
from engine.events import Phase
from engine.kvbatch import SequenceBatch
from engine.kvcache import KVCache
from engine.oom import with_smaller_chunks
from engine.params import MAX_TOGETHER

Logits = npt.NDArray[np.float32]


class LanguageModel(Protocol):
    """What a session asks of a model; `engine.models.mixtral.MixtralModel` is one."""

    def new_cache(self, capacity: int) -> KVCache:
        """An empty cache for `capacity` tokens."""

    def prepare(self, cache: KVCache) -> None:
        """Do what the first step with a cache would have to do once."""

    def forward(
        self,
        token_ids: torch.Tensor,
        cache: KVCache,
        *,
        logits: Literal["last", "all", "none"] = "last",
        phase: Phase | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> torch.Tensor | None:
        """Read tokens after those in the cache; see MixtralModel.forward."""

    def forward_batch(self, token_ids: torch.Tensor, batch: SequenceBatch) -> torch.Tensor:
        """Read one token of each sequence of a batch; see MixtralModel.forward_batch."""


class Session:
    """One KV cache and the ids of the tokens in it.

    A new prompt keeps what it has in common with the tokens read before: the turns of one conversation share
    all but the newest message, and another conversation shares little or nothing. The cache holds every
    position, with a sliding window too, so cutting it anywhere leaves it right.
    """

    def __init__(self, model: LanguageModel, capacity: int, prefill_chunk: int = 256) -> None:
        self._model = model
        self._cache = model.new_cache(capacity)
        self._tokens: list[int] = []
        self._batch: SequenceBatch | None = None
        self._planned_chunk = self._chunk = prefill_chunk

    def prepare(self) -> None:
        """Let the model do now what its first step would have to do."""
        self._model.prepare(self._cache)

    @property
    def capacity(self) -> int:
        """The most tokens the cache holds."""
        return self._cache.capacity

    @property
    def used(self) -> int:
        """Tokens in the cache."""
        return len(self._tokens)

    @property
    def full(self) -> bool:
        """Whether no further token fits."""
        return self.used >= self.capacity

    def begin(self, prompt: Sequence[int]) -> int:
        """Cut the cache back to what `prompt` begins with; returns how many of its tokens are still there.

        At least the last one is read again, because its logits are needed. Raises GenerationError, and leaves
        the cache alone, if the prompt is empty or longer than the cache.
        """
        check_prompt(prompt, self.capacity)
        self._lengthen_chunks()
        common = common_prefix(self._tokens, prompt[:-1])
        self._cache.truncate(common)
        del self._tokens[common:]
        return common

    def read(
        self, prompt: Sequence[int], check: Callable[[], None] = lambda: None
    ) -> Iterator[Logits | None]:
        """Read the rest of the prompt given to `begin`, chunk by chunk.

        Yields None after each chunk but the last, and then the logits [vocabulary] of the next token. Whoever
        iterates may stop between chunks, and `check`, called between a chunk's layers, may raise to leave: a
        chunk of a large model can take seconds. What was read stays for the next prompt.
        """
        while True:
            start = self.used
            logits = self._read_chunk(self._cache, prompt, start, check)
            self._tokens.extend(prompt[start : self._cache.length])
            yield logits
            if self.used == len(prompt):
                return

    def step(self, token: int) -> Logits:
        """Read one generated token; returns the logits [vocabulary] of the next."""
        ids = torch.tensor([token], dtype=torch.int64)
        logits = self._model.forward(ids, self._cache, logits="last", phase=Phase.DECODE)
        assert logits is not None
        self._tokens.append(token)
        row: Logits = logits[-1].numpy()
        return row

    def branch(self, sequences: int) -> SequenceBatch:
        """Continuations of what was read, all alike to begin with; they live in the rest of the cache.

        They end with `adopt`, or with the next `begin`, `read` or `step`.
        """
        batch = self._restarted(self.used)
        batch.reorder([0] * sequences)
        return batch

    def adopt(self, batch: SequenceBatch, index: int, tokens: Sequence[int]) -> None:
        """Go on with one of the branches, which begins with `tokens` after what was read before."""
        batch.straighten(index, self.used + len(tokens))
        self._tokens.extend(tokens)
        self._cache.length = len(self._tokens)

    def lend(self) -> SequenceBatch:
        """Room for independent sequences, in the whole cache; what was read is forgotten."""
        self._tokens.clear()
        self._cache.truncate(0)
        return self._restarted(0)

    def _restarted(self, tokens: int) -> SequenceBatch:
        """The session's batch, one for all times: a GPU's graphs are made for its tables."""
        if self._batch is None:
            self._batch = SequenceBatch(self._cache, MAX_TOGETHER)
        self._batch.restart(tokens)
        return self._batch

    def read_into(
        self, cache: KVCache, prompt: Sequence[int], check: Callable[[], None] = lambda: None
    ) -> Iterator[Logits | None]:
        """Like `read`, the whole of a prompt into the cache of a sequence of a batch."""
        self._lengthen_chunks()
        while cache.length < len(prompt):
            yield self._read_chunk(cache, prompt, cache.length, check)

    def step_batch(self, tokens: Sequence[int], batch: SequenceBatch) -> Logits:
        """Read one token of each sequence of a batch; returns the logits [sequences, vocabulary] of the next.

        Raises GenerationError if the batch has too few free rows.
        """
        ids = torch.tensor(tokens, dtype=torch.int64)
        rows: Logits = self._model.forward_batch(ids, batch).numpy()
        return rows

    def _read_chunk(
        self, cache: KVCache, prompt: Sequence[int], start: int, check: Callable[[], None]
    ) -> Logits | None:
        """The prompt's next chunk into a cache that holds `start` tokens; the last token's logits at its end.

        Where the GPU's memory does not suffice, the rest of the prompt is read in shorter chunks.
        """

        def read(chunk: int) -> torch.Tensor | None:
            tokens = prompt[start : start + chunk]
            return self._model.forward(
                torch.tensor(tokens, dtype=torch.int64),
                cache,
                logits="last" if start + len(tokens) == len(prompt) else "none",
                phase=Phase.PREFILL,
                check=check,
            )

        wanted = min(self._chunk, len(prompt) - start)
        logits, fitted = with_smaller_chunks(read, wanted)
        if fitted < wanted:
            self._chunk = fitted
        return None if logits is None else logits[-1].numpy()

    def _lengthen_chunks(self) -> None:
        """Let a new prompt be read in chunks twice as long as the last one's, up to the planned length.

        What took the memory then, another program perhaps, may be gone. Where it is not, the longer chunk
        fails, is halved as at first, and nothing is lost but that attempt: each prompt earns one doubling,
        so that over all prompts at most one attempt for each fails. At the planned length at once, where the
        shortage stays, every prompt would fail as often as the first.
        """
        self._chunk = min(2 * self._chunk, self._planned_chunk)


def check_prompt(prompt: Sequence[int], capacity: int) -> None:
    """Raise GenerationError if a prompt is empty or longer than a cache of `capacity` tokens."""
    if not prompt:
        raise GenerationError("The prompt is empty.", action="Write something first.")
    if len(prompt) > capacity:
        raise PromptTooLongError(
            "The prompt is too long for the model's context.",
            why=f"It has {len(prompt)} tokens, and the context holds {capacity}.",
            action="Shorten the message, start a new chat, or load the model with a longer context.",
        )


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their start."""
    for place, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return place
    return min(len(first), len(second))
