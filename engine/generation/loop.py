"""The token loop: reads the prompt, then draws tokens until something ends the answer, telling events."""

from __future__ import annotations

from collections.abc import Iterator

from engine.events import Event, FinishReason, StatsUpdate, TextDelta
from engine.generation.drawing import DrawnAnswer
from engine.generation.request import STATS_INTERVAL, Request, read_prompt
from engine.session import Session


def generate(session: Session, request: Request) -> Iterator[Event]:
    """Generate an answer; the last event is Finished.

    A cancel is heard between chunks of the prompt and after every token. Text that is already certain is
    always handed out, also when the answer is cancelled. Closing the iterator early leaves the session
    usable.

    Raises:
        GenerationError: the prompt is empty or does not fit, or the model's output is unusable.
    """
    meter = request.meter(session.capacity)
    reused = session.begin(request.prompt)
    answer = DrawnAnswer(request, meter, session.capacity)
    chunks = session.read(request.prompt, request.check)
    logits = yield from read_prompt(request, chunks, lambda: session.used, reused, meter)
    if logits is None:
        yield from answer.finish(FinishReason.CANCELLED, session.used)
        return
    told = request.clock()
    while True:
        drawn = answer.draw(logits, session.used)
        if drawn.text:
            yield TextDelta(drawn.text)
        reason = drawn.reason
        if reason is None and request.cancelled():
            reason = FinishReason.CANCELLED
        if reason is not None:
            break
        if request.clock() - told >= STATS_INTERVAL:
            told = request.clock()
            yield StatsUpdate(meter.stats(session.used, answer.seed))
        logits = session.step(drawn.token)
    yield from answer.finish(reason, session.used)
