from __future__ import annotations

import csv
import io
from dataclasses import fields, replace
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.notices import figures_tip
from app.panel.csv_table import to_csv
from app.panel.figures import forecast, speed
from app.panel.history import ChatFigures, together
from app.panel.time_parts import time_parts
from engine.accounting import Part
from engine.events import ExpertHits, GenerationStats, Place
from tests.app.figures import stats_after
from tests.app.panel.rows import answer_row


def test_a_chats_figures_are_those_of_its_answers() -> None:
    rows = [
        answer_row(1),
        answer_row(2, tokens=30),
        answer_row(3, tokens=0),
        replace(answer_row(4), stats=None),
    ]
    chat = ChatFigures().with_rows(rows)
    assert [answer.message_id for answer in chat.answers] == [101, 102]
    assert chat.rates() == (31.0, 32.0)
    counts = stats_after(20).hits.counts + stats_after(30).hits.counts
    assert np.array_equal(chat.hits_of("Starter model").counts, counts)
    assert chat.answers[1].stats.hits.total(Place.CPU) == stats_after(30).hits.total(Place.CPU)
    assert chat.answers[1].stats.hits.counts.shape == (2, 1, 1, 4)
    assert chat.index_of(102) == 1
    assert chat.index_of(103) is chat.index_of(None) is None


def test_models_are_not_mixed() -> None:
    chat = ChatFigures().with_rows([answer_row(1), answer_row(2, model="Other"), answer_row(3)])
    assert chat.hits_of("Starter model").total(Place.CPU) == 2 * chat.hits_of("Other").total(Place.CPU)
    assert chat.hits_of("Third").counts.size == 0
    smaller = ExpertHits.zeros(2, 2)
    assert together(stats_after(3).hits, smaller) is smaller
    assert together(stats_after(3).hits, ExpertHits.zeros(0, 0)).total(Place.CPU) == 36
    both = together(stats_after(3).hits, stats_after(3).hits)
    assert both.total(Place.CPU) == 72


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "Nothing was measured in this chat yet."),
        ([answer_row(1)], "One answer so far: 31.0 tokens per second."),
        ([answer_row(1, tokens_per_second=0.0)], "Nothing was measured in this chat yet."),
        (
            [
                answer_row(1, tokens_per_second=10.0, decode_seconds=3.0),
                answer_row(2, tokens_per_second=30.0, decode_seconds=1.0),
            ],
            "2 answers: 15.0 tokens per second on average, from 10.0 to 30.0.",
        ),
    ],
)
def test_the_history_is_told_in_a_sentence(rows: list, text: str) -> None:  # type: ignore[type-arg]
    assert ChatFigures().with_rows(rows).describe() == text


@given(st.text(max_size=20), st.floats(0, 1e6))
def test_the_table_holds_every_answer_and_is_read_back(model: str, rate: float) -> None:
    chat = ChatFigures().with_rows(
        [answer_row(1, model=model, tokens_per_second=rate), answer_row(2, prediction_error=-0.25, refits=3)]
    )
    lines = list(csv.DictReader(io.StringIO(to_csv(chat), newline="")))
    assert [line["answer"] for line in lines] == ["1", "2"]
    assert lines[0]["model"].removeprefix("'") == chat.answers[0].model
    assert not lines[0]["model"].startswith(("=", "+", "-", "@"))
    assert float(lines[0]["tokens_per_second"]) == rate
    assert lines[0]["time_utc"] == chat.answers[0].at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (lines[0]["prediction_error"], lines[1]["prediction_error"], lines[1]["refits"]) == (
        "",
        "-0.25",
        "3",
    )
    assert float(lines[1]["cpu_experts_microseconds"]) == 710_000
    assert (lines[0]["pace_stride"], lines[0]["pace_seconds"]) == ("4", "0.1 0.2 0.3 0.4 0.5")
    assert int(lines[1]["decode_experts_cpu"]) == stats_after(20).hits.total(Place.CPU)


numbers = st.integers() | st.floats() | st.none() | st.text(max_size=3)
names = st.sampled_from([field.name for field in fields(GenerationStats)])


@given(st.dictionaries(names, numbers), st.dictionaries(st.sampled_from(Part), numbers))
def test_imported_figures_of_any_size_can_be_shown(
    figures: dict[str, object], parts: dict[str, object]
) -> None:
    time = {"steps": 3, "whole": 1.0, "parts": parts}
    row = replace(answer_row(1), stats={"generated_tokens": 5} | figures | {"time": time})
    chat = ChatFigures().with_rows([row, answer_row(2)])
    assert chat.describe()
    assert len(list(csv.reader(io.StringIO(to_csv(chat), newline="")))) == len(chat.answers) + 1
    for answer in chat.answers:
        speed(answer.stats)
        forecast(answer.stats)
        assert all(part.figures for part in time_parts(answer.stats.time))
    assert isinstance(figures_tip(row), str)
