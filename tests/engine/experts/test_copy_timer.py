"""Timing copies by events: here with a clock and a stream that the test moves on."""

import pytest

from engine.experts.copy_timer import CopyTimer


class Clock:
    """A stream: what is enqueued happens at `now`, and is known to have happened up to `reached`."""

    def __init__(self):
        self.now = 0.0  # milliseconds
        self.reached = 0.0
        self.made = 0

    def event(self):
        self.made += 1
        return Event(self)


class Event:
    def __init__(self, clock):
        self.clock = clock
        self.time = None

    def record(self):
        self.time = self.clock.now

    def query(self):
        return self.time <= self.clock.reached

    def elapsed_time(self, end):
        assert end.query()
        return end.time - self.time


def test_only_what_has_ended_counts_and_once():
    clock = Clock()
    timer = CopyTimer(clock.event)
    for duration in (5, 7):
        with timer.timing():
            clock.now += duration
        clock.now += 100  # between the two nothing is copied
    assert timer.take_seconds() == 0
    clock.reached = 6
    assert timer.take_seconds() == pytest.approx(5e-3)
    assert timer.take_seconds() == 0
    clock.reached = 1000
    assert timer.take_seconds() == pytest.approx(7e-3)


def test_events_are_used_again_and_nothing_grows_if_nobody_asks():
    clock = Clock()
    timer = CopyTimer(clock.event)
    for _ in range(1000):
        with timer.timing():
            clock.now += 1
        clock.reached = clock.now
    assert clock.made < 100
    assert timer.take_seconds() == pytest.approx(1.0)
