"""The token loop: reads the prompt, then draws tokens until something ends the answer, telling events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from engine.events import (
    Event,
    ExpertHits,
    Finished,
    FinishReason,
    PromptProgress,
    StatsUpdate,
    TextDelta,
)
from engine.generation.meter import Meter
from engine.generation.sampling import Sampler
from engine.generation.stopping import LoopDetector, StopStrings
from engine.generation.tokenizer import TokenStream
from engine.params import GenerationParams
from engine.session import Logits, Session

STATS_INTERVAL = 0.1  # seconds


@dataclass(frozen=True)
class Request:
    """One generation: the prompt's token ids, what ends it, and how its tokens become text.

    `cancelled` tells whether to stop. `started` is when the user asked, on `clock`; `hits` returns the
    model's running total of executions.
    """

    prompt: Sequence[int]
    params: GenerationParams
    eos_ids: frozenset[int]
    text: TokenStream
    hits: Callable[[], ExpertHits]
    cancelled: Callable[[], bool]
    started: float
    clock: Callable[[], float] = time.perf_counter


def generate(session: Session, request: Request) -> Iterator[Event]:
    """Generate an answer; the last event is Finished.

    A cancel is heard between chunks of the prompt and after every token. Text that is already certain is
    always handed out, also when the answer is cancelled. Closing the iterator early leaves the session
    usable.

    Raises:
        GenerationError: the prompt is empty or does not fit, or the model's output is unusable.
    """
    meter = Meter(request.clock, request.started, request.hits, session.capacity)
    sampler = Sampler(request.params.sampling)
    answer = _Answer(request)
    logits: Logits | None = None

    def finished(reason: FinishReason) -> Iterator[Event]:
        rest, stopped = answer.end(reason)
        if rest:
            yield TextDelta(rest)
        reason = FinishReason.STOP_STRING if stopped else reason
        stats = meter.stats(session.used, sampler.seed)
        yield Finished(reason, stats, message_for(reason, request.params, session.capacity))

    reused = session.begin(request.prompt)
    total = len(request.prompt)
    meter.prompt_begins(total, reused)
    sampler.see(list(request.prompt))
    yield PromptProgress(reused, total, reused)
    chunks = session.read(request.prompt)
    while logits is None:
        if request.cancelled():
            yield from finished(FinishReason.CANCELLED)
            return
        logits = next(chunks)
        meter.prompt_read()
        yield PromptProgress(session.used, total, reused)

    told = request.clock()
    while True:
        token = sampler.draw(logits)
        reason = answer.ends_with(token)
        if reason is FinishReason.EOS:
            break
        meter.token()
        sampler.see([token])
        text, stopped = answer.push(token)
        if text:
            yield TextDelta(text)
        if stopped:
            reason = FinishReason.STOP_STRING
        elif request.cancelled():
            reason = FinishReason.CANCELLED
        elif reason is None and meter.generated >= request.params.max_tokens:
            reason = FinishReason.LENGTH
        elif reason is None and session.full:
            reason = FinishReason.CONTEXT_FULL
        if reason is not None:
            break
        if request.clock() - told >= STATS_INTERVAL:
            told = request.clock()
            yield StatsUpdate(meter.stats(session.used, sampler.seed))
        logits = session.step(token)
    yield from finished(reason)


class _Answer:
    """The text of an answer, and the ends that lie in its tokens or its text."""

    def __init__(self, request: Request) -> None:
        params = request.params
        self._eos_ids = frozenset[int]() if params.ignore_eos else request.eos_ids
        self._loops = LoopDetector() if params.stop_loops else None
        self._text = request.text
        self._stops = StopStrings(params.stop)

    def ends_with(self, token: int) -> FinishReason | None:
        """Why `token` ends the answer, if it does; EOS itself is not part of it."""
        if token in self._eos_ids:
            return FinishReason.EOS
        if self._loops is not None and self._loops.push(token):
            return FinishReason.LOOP
        return None

    def push(self, token: int) -> tuple[str, bool]:
        """The text that may now be shown, and whether a stop string ended the answer."""
        return self._stops.push(self._text.push(token))

    def end(self, reason: FinishReason) -> tuple[str, bool]:
        """The text still held back, and whether a stop string ends the answer after all."""
        if reason is FinishReason.STOP_STRING:
            return "", False
        text, stopped = self._stops.push(self._text.flush())
        return text + self._stops.flush(), stopped


def message_for(reason: FinishReason, params: GenerationParams, context_length: int) -> str:
    """What to tell the user about the end of an answer; empty when nothing needs saying."""
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
