from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.events import ExpertHits
from engine.generation.meter import Meter
from engine.pace import POINTS, Pace, PaceMeter


@given(st.integers(0, 2000), st.floats(0.001, 2))
def test_an_even_answer_has_an_even_pace_in_few_points(tokens: int, each: float) -> None:
    meter = PaceMeter()
    for number in range(1, tokens + 1):
        meter.token(number * each)
    pace = meter.snapshot()
    assert len(pace.seconds) <= POINTS
    assert len(pace.seconds) == tokens // pace.stride
    for index, seconds in enumerate(pace.seconds, 1):
        assert seconds == pytest.approx(index * pace.stride * each, abs=1e-4)
    for most in (1, 7, 40, POINTS):
        rates = pace.rates(most)
        assert len(rates) <= most
        assert rates == pytest.approx([1 / each] * len(rates), rel=0.2)


def test_a_slow_stretch_shows_where_it_was() -> None:
    pace = Pace(10, (1.0, 2.0, 7.0, 8.0))
    assert pace.rates() == (10.0, 10.0, 2.0, 10.0)
    assert pace.rates(2) == (10.0, pytest.approx(20 / 6))
    assert Pace().rates() == ()


def test_the_meter_counts_from_the_first_token() -> None:
    times = iter((6.0, 6.5, 7.5))
    meter = Meter(lambda: next(times), 0.0, lambda: ExpertHits.zeros(1, 1), 16)
    assert meter.stats(0, None).pace == Pace()
    for _ in range(3):
        meter.token()
    assert meter.stats(0, None).pace == Pace(1, (0.5, 1.5))
