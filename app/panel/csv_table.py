"""The history of a chat's answers as a table for spreadsheets (CSV, RFC 4180, numbers with a point)."""

from __future__ import annotations

import csv
import io
from datetime import UTC

from app.panel.history import AnswerFigures, ChatFigures
from engine.accounting import Part
from engine.events import Phase, Place
from engine.text import clean_text

# Names of columns are not translated: programs read them.
_STATS = (
    "prompt_tokens",
    "reused_tokens",
    "generated_tokens",
    "time_to_first_token",
    "prefill_seconds",
    "decode_seconds",
    "tokens_per_second",
    "prefill_tokens_per_second",
    "context_used",
    "context_length",
    "seed",
    "prediction_error",
    "refits",
)
# What makes a spreadsheet compute a text; and the mark itself, so that every text can be told from its cell.
_SPECIAL = ("=", "+", "-", "@", "\t", "\r", "'")


def to_csv(chat: ChatFigures) -> str:
    """One line per answer: when, model, end, figures, microseconds of a token by part, experts by place.

    `pace_seconds` are the times after the first token at which every `pace_stride` more tokens were there.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    parts = [f"{part}_microseconds" for part in Part]
    places = [f"{phase.name.lower()}_experts_{place.name.lower()}" for phase in Phase for place in Place]
    pace = ["pace_stride", "pace_seconds"]
    writer.writerow(["answer", "time_utc", "model", "reason", *_STATS, *parts, *places, *pace])
    for number, answer in enumerate(chat.answers, 1):
        writer.writerow([number, *_cells(answer)])
    return out.getvalue()


def _cells(answer: AnswerFigures) -> list[object]:
    stats = answer.stats
    time = answer.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    figures = [getattr(stats, name) for name in _STATS]
    spent = stats.time.microseconds()
    parts = [round(spent[part], 1) if spent else None for part in Part]
    places = [stats.hits.total(place, phase) for phase in Phase for place in Place]
    pace = [stats.pace.stride, " ".join(f"{seconds:g}" for seconds in stats.pace.seconds)]
    return [time, _text(answer.model), _text(answer.reason), *figures, *parts, *places, *pace]


def _text(value: str) -> str:
    """A text that a spreadsheet takes for text."""
    clean = clean_text(value)
    return f"'{clean}" if clean.startswith(_SPECIAL) else clean
