from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bench.timing import Times, expected_seconds, time_calls
from engine.errors import Cancelled
from engine.progress import CancelToken


class Work:
    """A clock that only calls move, by the durations given; the last one repeats."""

    def __init__(self, *durations: float) -> None:
        self.now = 0.0
        self.calls = 0
        self._durations = list(durations)

    def call(self) -> None:
        self.now += self._durations[min(self.calls, len(self._durations) - 1)]
        self.calls += 1

    def times(self, seconds: float) -> Times:
        return time_calls(self.call, seconds, CancelToken(), lambda: self.now)


def test_best_and_median_without_the_first_call() -> None:
    work = Work(0.9, 0.5, 0.2, 0.3, 0.1, 0.4)
    assert work.times(1.45) == Times(pytest.approx(0.1), pytest.approx(0.3), 5)


def test_a_call_longer_than_all_the_time_counts_itself() -> None:
    work = Work(7.0)
    assert work.times(1.0) == Times(7.0, 7.0, 1)
    assert work.calls == 1


def test_long_calls_need_not_be_many() -> None:
    work = Work(1.6)
    assert work.times(0.1).calls == 1
    assert work.calls == 2


@given(duration=st.floats(1e-3, 0.3), seconds=st.floats(1e-3, 5))
def test_short_calls_fill_the_time_and_are_at_least_three(duration: float, seconds: float) -> None:
    times = Work(duration).times(seconds)
    assert times.best == pytest.approx(duration)
    assert times.calls >= 3
    assert times.calls * duration >= seconds * (1 - 1e-9)
    if times.calls > 3:
        assert (times.calls - 1) * duration < seconds * (1 + 1e-9)


def test_it_stops_between_two_calls() -> None:
    cancel, calls = CancelToken(), 0

    def call() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            cancel.cancel()

    with pytest.raises(Cancelled):
        time_calls(call, 60, cancel)
    assert calls == 2


def test_times_of_a_part() -> None:
    assert Times(2.0, 4.0, 9).over(2) == Times(1.0, 2.0, 9)


def test_nothing_known_means_no_reason_to_leave_out() -> None:
    assert expected_seconds({}, 256) == 0
    assert expected_seconds({300: 9.0}, 256) == 0


def test_one_time_is_a_lower_bound() -> None:
    assert expected_seconds({1: 0.03}, 256) == 0.03


@given(
    fixed=st.floats(0, 1),
    slope=st.floats(0, 1),
    counts=st.lists(st.integers(1, 300), min_size=3, max_size=6, unique=True).map(sorted),
)
def test_a_straight_line_is_continued(fixed: float, slope: float, counts: list[int]) -> None:
    measured = {count: fixed + slope * count for count in counts[:-1]}
    assert expected_seconds(measured, counts[-1]) == pytest.approx(fixed + slope * counts[-1])


def test_a_time_that_fell_by_chance_is_not_continued_downwards() -> None:
    assert expected_seconds({1: 0.5, 2: 0.4}, 64) == 0.4
