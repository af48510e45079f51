"""What one generation is asked to do, reading its prompt, and what the user is told about its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from engine.accounting import TimeSplit
from engine.errors import Cancelled
from engine.events import Event, ExpertHits, FinishReason, Prediction, PromptProgress
from engine.generation.meter import Meter
from engine.generation.tokenizer import TokenStream
from engine.params import GenerationParams, OverflowPolicy
from engine.session import Logits

STATS_INTERVAL = 0.1  # seconds


@dataclass(frozen=True)
class Request:
    """One generation: the prompt's token ids, what ends it, and how its tokens become text.

    `new_text` makes the stream of an answer's text. `cancelled` tells whether to stop. `started` is when the
    user asked, on `clock`; `hits` returns the model's running total of executions, `time_split` that of the
    time of decode steps, `prediction` how well layers were foretold lately.
    """

    prompt: Sequence[int]
    params: GenerationParams
    eos_ids: frozenset[int]
    new_text: Callable[[], TokenStream]
    hits: Callable[[], ExpertHits]
    cancelled: Callable[[], bool]
    started: float
    time_split: Callable[[], TimeSplit] = TimeSplit
    prediction: Callable[[], Prediction] = Prediction
    clock: Callable[[], float] = time.perf_counter

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end the answer."""
        return frozenset() if self.params.ignore_eos else self.eos_ids

    def meter(self, context_length: int) -> Meter:
        """A meter of this generation's figures."""
        return Meter(self.clock, self.started, self.hits, context_length, self.time_split, self.prediction)

    def check(self) -> None:
        """Raise Cancelled if the generation is to stop."""
        if self.cancelled():
            raise Cancelled


def read_prompt(
    request: Request, chunks: Iterator[Logits | None], used: Callable[[], int], reused: int, meter: Meter
) -> Generator[Event, None, Logits | None]:
    """Read a request's prompt chunk by chunk, as `Session.read` gives them, and tell how far it is.

    `used` tells how many of its tokens have been read, `reused` how many were there before. Returns the
    logits [vocabulary] of the first token, or None if it was cancelled; that is heard between chunks and,
    where `chunks` were given `Request.check`, between layers.
    """
    total = len(request.prompt)
    meter.prompt_begins(total, reused)
    yield PromptProgress(reused, total, reused)
    logits: Logits | None = None
    while logits is None:
        try:
            request.check()
            logits = next(chunks)
        except Cancelled:
            return None
        meter.prompt_read()
        yield PromptProgress(used(), total, reused)
    return logits


def message_for(reason: FinishReason, params: GenerationParams, context_length: int) -> str:
    """What to tell the user about the end of an answer; empty when nothing needs saying."""
    if reason is FinishReason.CONTEXT_FULL and params.overflow is not OverflowPolicy.STOP:
        return (
            f"The answer has filled what was free of the model's context of {context_length} tokens, so it "
            "stops here. Continue it, and earlier messages, if there are any, make room."
        )
    if reason is FinishReason.CONTEXT_FULL:
        return (
            f"The conversation has filled the model's context of {context_length} tokens, so the answer "
            "stops here. Nothing was dropped. Start a new chat to go on."
        )
    if reason is FinishReason.LOOP:
        return "The answer began to repeat itself, so it was stopped."
    if reason is FinishReason.LENGTH:
        return f"The answer reached the limit of {params.max_tokens} tokens."
    return ""
