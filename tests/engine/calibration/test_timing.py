from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.calibration.timing import Timing, measure


class Clock:
    """A clock that only an action moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_median_of_the_repetitions_without_the_warm_up() -> None:
    clock, durations = Clock(), iter([50.0, 40.0, 1.0, 9.0, 2.0, 3.0, 4.0])

    def action() -> None:
        clock.now += next(durations)

    timing = measure(action, seconds=0, least=5, warm_up=2, clock=clock)
    assert timing.seconds == 3.0
    assert timing.spread > 0


@given(
    duration=st.floats(1e-3, 1),
    seconds=st.floats(0, 5),
    least=st.integers(1, 10),
    extra=st.integers(0, 50),
    warm_up=st.integers(0, 3),
)
def test_as_many_repetitions_as_time_and_limits_allow(
    duration: float, seconds: float, least: int, extra: int, warm_up: int
) -> None:
    clock, calls = Clock(), 0

    def action() -> None:
        nonlocal calls
        calls += 1
        clock.now += duration

    timing = measure(action, seconds=seconds, least=least, most=least + extra, warm_up=warm_up, clock=clock)
    assert timing.seconds == pytest.approx(duration)
    counted = calls - warm_up
    assert least <= counted <= least + extra
    if counted > least:  # repetitions beyond the least started within the time
        assert (counted - 1) * duration < seconds + 1e-9


def test_an_outlier_moves_neither_median_nor_spread_much() -> None:
    quiet = Timing.of([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0])
    noisy = Timing.of([1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 100.0])
    assert noisy.seconds == pytest.approx(quiet.seconds, rel=0.02)
    assert noisy.spread < 0.1
    assert Timing.of([2.0]) == Timing(2.0, 0.0)
