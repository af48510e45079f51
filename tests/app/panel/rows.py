"""Saved answers for the tests of the panel."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from app.storage.figures import stats_to_json
from app.storage.rows import MessageRow, MessageState
from engine.pace import Pace
from tests.app.figures import stats_after
from tests.app.panel.splits import BUSY

BEGUN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def answer_row(
    number: int, *, tokens: int = 20, chat: int = 1, model: str = "Starter model", **stats: Any
) -> MessageRow:
    """The answer `number` of a chat, with figures as after `tokens` tokens."""
    pace = Pace(4, tuple(0.1 * step for step in range(1, 6)))
    figures = replace(stats_after(tokens), time=BUSY, pace=pace)
    figures = replace(figures, **({"tokens_per_second": 30.0 + number} | stats))
    return MessageRow(
        id=100 + number,
        conversation_id=chat,
        role="assistant",
        content="…",
        state=MessageState.COMPLETE,
        created=BEGUN,
        finished=BEGUN + timedelta(minutes=number),
        model=model,
        reason="eos",
        stats=stats_to_json(figures),
    )
