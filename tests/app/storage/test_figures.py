from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.figures import stats_from_json, stats_to_json
from app.storage.rows import dump_json
from engine.accounting import Part, TimeSplit
from engine.events import GenerationStats
from engine.pace import Pace
from tests.app.figures import stats_after

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
parts = st.dictionaries(st.sampled_from(Part), anything)
times = st.fixed_dictionaries({}, optional={"steps": anything, "whole": anything, "parts": parts})
names = st.sampled_from(sorted(stats_to_json(GenerationStats())))


def test_where_the_time_went_is_saved_with_the_answer() -> None:
    split = TimeSplit(5, 1.5, {part: 0.1 * number for number, part in enumerate(Part)})
    stats = replace(stats_after(5), time=split, prediction_error=-0.25, refits=2, pace=Pace(2, (0.5, 0.75)))
    read = stats_from_json(json.loads(dump_json(stats_to_json(stats)) or ""))
    assert read.time == split
    assert np.array_equal(read.hits.counts, stats.hits.counts)
    assert replace(read, hits=stats.hits) == stats


def test_the_hits_can_be_left_out() -> None:
    stats = stats_after(5)
    read = stats_from_json(stats_to_json(stats), hits=False)
    assert read.hits.counts.size == 0
    assert read.generated_tokens == 5


@given(st.dictionaries(names, anything, max_size=6), times)
def test_figures_of_any_form_are_read(value: dict[str, Any], time: dict[str, Any]) -> None:
    for figures in (value, value | {"time": time}):
        stats = stats_from_json(figures)
        assert isinstance(stats.generated_tokens, int)
        assert isinstance(stats.tokens_per_second, float)
        assert stats.hits.counts.ndim == 4
        assert set(stats.time.parts) == set(Part)
        assert list(stats.pace.seconds) == sorted(stats.pace.seconds)
        assert dump_json(stats_to_json(stats))


@pytest.mark.parametrize("parts", [{"python": -1.0}, {"python": "x"}, [], None])
def test_a_time_that_cannot_be_is_none(parts: Any) -> None:
    assert stats_from_json({"time": {"steps": 1, "whole": 1.0, "parts": parts}}).time == TimeSplit()


@pytest.mark.parametrize(
    "pace",
    [{"stride": 0, "seconds": [1]}, {"stride": 1, "seconds": [2, 1]}, {"stride": "1", "seconds": [1]}, 3],
)
def test_a_pace_that_cannot_be_is_none(pace: Any) -> None:
    assert stats_from_json({"pace": pace}).pace == Pace()
