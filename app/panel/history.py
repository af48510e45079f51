"""The figures of a chat's answers, read from what is saved with each: for plots, map and table."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import numpy.typing as npt

from app.answers import short_number
from app.i18n import tr, tr_count
from app.storage.figures import stats_from_json
from app.storage.rows import MessageRow
from engine.events import ExpertHits, GenerationStats

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class AnswerFigures:
    """One answer: which message, of which model, when, how it ended, and its figures.

    The hits are summed over layers and experts, [2 phases, 1, 1, 4 places]: a long chat stays small.
    """

    message_id: int
    model: str
    at: datetime
    reason: str
    stats: GenerationStats


@dataclass(frozen=True)
class ChatFigures:
    """The answers of a chat in order, and how often each expert was chosen in all of them, by model."""

    answers: tuple[AnswerFigures, ...] = ()
    hits: Mapping[str, Counts] = field(default_factory=dict)

    def with_rows(self, rows: Iterable[MessageRow]) -> ChatFigures:
        """These and the answers among `rows`; those without a word are left out."""
        answers, hits = list(self.answers), dict(self.hits)
        for row in rows:
            time.sleep(0)  # in another thread: let the window's take its turn between two answers
            stats = None if row.stats is None else stats_from_json(row.stats)
            if stats is None or not stats.generated_tokens:
                continue
            before, counts = hits.get(row.model), stats.hits.counts
            same = before is not None and before.shape == counts.shape
            hits[row.model] = before + counts if before is not None and same else counts
            folded = dataclasses.replace(stats, hits=_folded(stats.hits))
            answers.append(AnswerFigures(row.id, row.model, row.finished or row.created, row.reason, folded))
        return ChatFigures(tuple(answers), hits)

    def hits_of(self, model: str) -> ExpertHits:
        """How often the experts of `model` were chosen in this chat."""
        return ExpertHits(self.hits.get(model, ExpertHits.zeros(0, 0).counts))

    def index_of(self, message_id: int | None) -> int | None:
        """The place of an answer; None if it is not among them."""
        found = (index for index, answer in enumerate(self.answers) if answer.message_id == message_id)
        return next(found, None)

    def rates(self) -> tuple[float, ...]:
        """Tokens per second, answer by answer."""
        return tuple(answer.stats.tokens_per_second for answer in self.answers)

    def describe(self) -> str:
        """All answers in a sentence."""
        known = [rate for rate in self.rates() if rate > 0]
        if not known:
            return tr("Nothing was measured in this chat yet.")
        if len(known) == 1:
            return tr("One answer so far: {rate} tokens per second.", rate=short_number(known[0]))
        # All tokens over all seconds: a short answer counts for as little as it took.
        seconds = sum(answer.stats.decode_seconds for answer in self.answers)
        tokens = sum(answer.stats.tokens_per_second * answer.stats.decode_seconds for answer in self.answers)
        return tr_count(
            "{count} answer: {rate} tokens per second on average, from {least} to {most}.",
            "{count} answers: {rate} tokens per second on average, from {least} to {most}.",
            len(known),
            rate=short_number(tokens / seconds if seconds > 0 else sum(known) / len(known)),
            least=short_number(min(known)),
            most=short_number(max(known)),
        )


def together(first: ExpertHits, second: ExpertHits) -> ExpertHits:
    """Two counts added; the second alone where they are of different models."""
    if first.counts.shape != second.counts.shape:
        return second if second.counts.size else first
    return ExpertHits(first.counts + second.counts)


def _folded(hits: ExpertHits) -> ExpertHits:
    return ExpertHits(hits.counts.sum(axis=(1, 2), keepdims=True))
