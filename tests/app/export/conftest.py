from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from app.storage import Conversation, MessageRow, MessageState
from app.storage.figures import params_to_json, stats_to_json
from engine.events import ExpertHits, GenerationStats
from engine.params import GenerationParams, SamplingParams

START = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
PARAMS = GenerationParams(SamplingParams(temperature=0.5, top_k=40, repetition_penalty=1.1), stop=("#",))


def statistics() -> GenerationStats:
    counts = np.zeros((2, 1, 2, 4), dtype=np.int64)
    counts[1, 0, 0] = [5, 1, 3, 1]
    return GenerationStats(
        generated_tokens=120,
        tokens_per_second=45.54,
        time_to_first_token=0.25,
        seed=7,
        hits=ExpertHits(counts),
    )


@pytest.fixture
def conversation() -> Conversation:
    return Conversation(3, "Rome & *Paris*", "Starter_1", "Be brief.", START, START + timedelta(minutes=5))


@pytest.fixture
def messages() -> list[MessageRow]:
    later = START + timedelta(seconds=3)
    return [
        MessageRow(1, 3, "user", "When was Rome founded?", MessageState.COMPLETE, START),
        MessageRow(
            2, 3, "assistant", "Not *now*.", MessageState.STOPPED, START, later, parent=1, active=False
        ),
        MessageRow(
            4,
            3,
            "assistant",
            "In 753 BC:\n\n```python\nprint(-753)",
            MessageState.INTERRUPTED,
            START,
            later,
            parent=1,
            model="Starter_1",
            reason="length",
            note="The answer reached its longest <length>.",
            params=params_to_json(PARAMS),
            stats=stats_to_json(statistics()),
        ),
    ]
