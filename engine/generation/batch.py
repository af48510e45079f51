"""Independent answers that are written together: each step reads a token of each, and an expert runs once."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from engine.events import Event, FinishReason, StatsUpdate, TextDelta
from engine.generation.drawing import DrawnAnswer
from engine.generation.meter import Meter
from engine.generation.request import STATS_INTERVAL, Request, read_prompt
from engine.kvbatch import SequenceBatch
from engine.params import MAX_TOGETHER
from engine.session import Logits, Session, check_prompt


@dataclass
class _Member:
    """One answer in the making; `logits` are those of its next token."""

    index: int
    answer: DrawnAnswer
    meter: Meter
    room: int
    logits: Logits


def generate_batch(session: Session, requests: Sequence[Request]) -> Iterator[tuple[int, Event]]:
    """Write several answers together; yields (index of the request, event), each request's last is Finished.

    Every answer is what it would be alone, up to the rounding of sums. Answers share the session's cache:
    each has room for its prompt and the most tokens it may get, and requests that do not fit beside those
    before them wait, in their order, until an answer has ended. The figures of expert executions count those
    of all answers that were written meanwhile. The session is empty afterwards.

    Raises:
        GenerationError: a prompt is empty or does not fit; nothing has been read then. Or the model's output
            is unusable.
    """
    for request in requests:
        check_prompt(request.prompt, session.capacity)
    if requests:
        yield from _Together(session, requests).run()


class _Together:
    """The state of one batch. The members are in the order of the batch's sequences."""

    def __init__(self, session: Session, requests: Sequence[Request]) -> None:
        self._session = session
        self._requests = requests
        self._waiting = deque(range(len(requests)))
        self._batch: SequenceBatch = session.lend()
        self._members: list[_Member] = []

    def run(self) -> Iterator[tuple[int, Event]]:
        """All events of all answers."""
        told = 0.0
        while self._waiting or self._members:
            while self._waiting and self._fits(self._waiting[0]):
                yield from self._read(self._waiting.popleft())
            tokens, staying = [], []
            for place, member in enumerate(self._members):
                token = yield from self._draw(place, member)
                if token is not None:
                    tokens.append(token)
                    staying.append(place)
            self._members = [self._members[place] for place in staying]
            self._batch.reorder(staying)
            if not self._members:
                continue
            clock = self._requests[0].clock()
            if clock - told >= STATS_INTERVAL:
                told = clock
                for place, member in enumerate(self._members):
                    used = int(self._batch.lengths[place])
                    yield member.index, StatsUpdate(member.meter.stats(used, member.answer.seed))
            logits = self._session.step_batch(tokens, self._batch)
            for member, row in zip(self._members, logits, strict=True):
                member.logits = row

    def _room(self, index: int) -> int:
        """Tokens of the cache that a request may come to need; its last token is not read."""
        request = self._requests[index]
        return min(len(request.prompt) + request.params.max_tokens - 1, self._session.capacity)

    def _fits(self, index: int) -> bool:
        taken = sum(member.room for member in self._members)
        return len(self._members) < MAX_TOGETHER and taken + self._room(index) <= self._session.capacity

    def _read(self, index: int) -> Iterator[tuple[int, Event]]:
        """Read a prompt and make its answer a member."""
        request = self._requests[index]
        meter = request.meter(self._session.capacity)
        answer = DrawnAnswer(request, meter, self._session.capacity)
        rows = self._batch.claim(len(request.prompt))
        chunks = self._session.read_into(rows.cache, request.prompt, request.check)
        events = read_prompt(request, chunks, lambda: rows.cache.length, 0, meter)
        while True:
            try:
                yield index, next(events)
            except StopIteration as end:
                logits: Logits | None = end.value
                break
        if logits is None:
            self._batch.release(rows)
            for event in answer.finish(FinishReason.CANCELLED, rows.cache.length):
                yield index, event
            return
        self._batch.add(rows)
        self._members.append(_Member(index, answer, meter, self._room(index), logits))

    def _draw(self, place: int, member: _Member) -> Generator[tuple[int, Event], None, int | None]:
        """Draw a member's next token; returns it, or None if its answer has ended."""
        used = int(self._batch.lengths[place])
        drawn = member.answer.draw(member.logits, used)
        if drawn.text:
            yield member.index, TextDelta(drawn.text)
        reason = drawn.reason
        if reason is None and self._requests[member.index].cancelled():
            reason = FinishReason.CANCELLED
        if reason is None:
            return drawn.token
        for event in member.answer.finish(reason, used):
            yield member.index, event
        return None
