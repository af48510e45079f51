"""A beam search as a generation: one forward for all beams, and events while it goes on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from engine.events import Answer, Event, Finished, FinishReason, StatsUpdate, TextDelta
from engine.generation.beam import BeamSearch, Hypothesis, common_length
from engine.generation.beam_text import AgreedText, StopWatch, text_of
from engine.generation.meter import Meter
from engine.generation.request import STATS_INTERVAL, Request, message_for, read_prompt
from engine.generation.sampling import check_usable
from engine.kvbatch import SequenceBatch
from engine.session import Logits, Session


def generate_beams(session: Session, request: Request) -> Iterator[Event]:
    """Search the likeliest answer; the last event is Finished, with the best answers and their scores.

    Text is told as far as all beams that can still win agree on it, and the rest at the end. A cancel, which
    is heard as in the plain loop, ends with the best answer so far; so does a context without room for all
    beams. A loop (where it ends answers) is looked for in what the beams agree on. Figures count a token per
    step, whatever the number of beams.

    Raises:
        GenerationError: the prompt is empty or does not fit, or the model's output is unusable.
    """
    meter = request.meter(session.capacity)
    reused = session.begin(request.prompt)
    chunks = session.read(request.prompt, request.check)
    first = yield from read_prompt(request, chunks, lambda: session.used, reused, meter)
    if first is None:
        yield Finished(FinishReason.CANCELLED, meter.stats(session.used, None))
        return
    search = _Search(session, request, meter)
    yield from search.run(first)


class _Search:
    """One search after its prompt was read."""

    def __init__(self, session: Session, request: Request, meter: Meter) -> None:
        params = request.params
        self._session = session
        self._request = request
        self._params = params
        self._meter = meter
        self._ends = request.ends
        self._limit = params.max_tokens
        self._batch: SequenceBatch = session.branch(params.beams)
        self._beams = BeamSearch(params, request.prompt, len(self._ends))
        self._watch = StopWatch(request.new_text, params.stop, params.beams)
        self._agreed = AgreedText(request.new_text(), params)

    def run(self, first: Logits) -> Iterator[Event]:
        """All events after the prompt's."""
        told = self._request.clock()
        logits: Logits = np.repeat(first[None], self._params.beams, axis=0)
        reason = None
        while True:
            self._advance(logits)
            text = self._agreed.extend(self._newly_agreed())
            if text:
                yield TextDelta(text)
            reason = self._interruption()
            if self._beams.done or reason is not None:
                break
            if self._request.clock() - told >= STATS_INTERVAL:
                told = self._request.clock()
                yield StatsUpdate(self._meter.stats(self._used, None))
            newest = [tokens[-1] for tokens in self._beams.tokens]
            logits = self._session.step_batch(newest, self._batch)
        yield from self._finish(reason)

    @property
    def _used(self) -> int:
        """Places of the context that hold something."""
        return self._batch.capacity - self._batch.free_rows

    def _advance(self, logits: Logits) -> None:
        """One more token for every beam."""
        check_usable(logits)
        candidates = self._beams.propose(torch.from_numpy(logits))
        self._meter.token()
        at_limit = self._beams.length + 1 >= self._limit
        stopped = self._watch.ends(candidates.parents, candidates.tokens)
        ends = [
            at_limit or stop or token in self._ends
            for token, stop in zip(candidates.tokens, stopped, strict=True)
        ]
        chosen = self._beams.accept(candidates, ends)
        self._watch.accept(chosen)
        self._batch.reorder([candidates.parents[index] for index in chosen])

    def _newly_agreed(self) -> list[int]:
        """More tokens that every answer has which may still win: all beams, and the best finished one."""
        rivals = [list(self._visible(answer)) for answer in self._beams.finished[:1]]
        rivals += self._beams.tokens if not self._beams.done else []
        agreed = self._agreed.tokens
        return rivals[0][agreed : common_length(rivals, agreed)]

    def _interruption(self) -> FinishReason | None:
        """Why the search has to end before its own end."""
        if self._beams.done:
            return None
        if self._agreed.looped:
            return FinishReason.LOOP
        if self._request.cancelled():
            return FinishReason.CANCELLED
        if self._batch.free_rows < self._params.beams:
            return FinishReason.CONTEXT_FULL
        return None

    def _finish(self, reason: FinishReason | None) -> Iterator[Event]:
        if not self._beams.done:
            self._beams.close()
        found = self._beams.finished[: self._params.answers]
        rest = self._agreed.extend(self._visible(found[0])[self._agreed.tokens :]) + self._agreed.end()
        if rest:
            yield TextDelta(rest)
        self._keep(found[0])
        answers = tuple(self._answer(hypothesis, reason) for hypothesis in found)
        ended = answers[0].reason
        message = message_for(ended, self._params, self._session.capacity)
        yield Finished(ended, self._meter.stats(self._session.used, None), message, answers)

    def _visible(self, answer: Hypothesis) -> tuple[int, ...]:
        """An answer's tokens without the one that ends the model's turn."""
        return answer.tokens[:-1] if answer.tokens[-1] in self._ends else answer.tokens

    def _answer(self, found: Hypothesis, interruption: FinishReason | None) -> Answer:
        text, stopped = text_of(self._visible(found), self._request.new_text, self._params.stop)
        if found.tokens[-1] in self._ends:
            reason = FinishReason.EOS
        elif stopped:
            reason = FinishReason.STOP_STRING
        else:
            reason = interruption or FinishReason.LENGTH
        return Answer(text, found.score, len(found.tokens), reason)

    def _keep(self, best: Hypothesis) -> None:
        """Leave as much of the best answer in the session's cache as some beam still has."""
        agreed = [common_length([best.tokens, tokens], 0) for tokens in self._beams.tokens]
        index = int(np.argmax(agreed))
        read = int(self._batch.lengths[index]) - self._session.used
        self._session.adopt(self._batch, index, best.tokens[: min(agreed[index], read)])
