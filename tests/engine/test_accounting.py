"""Parts of a step add up to what passed, whatever the marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.accounting import Part, TimeAccount, TimeSplit


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def account(clock):
    return TimeAccount(clock)


def test_a_mark_takes_what_passed_since_the_last(account, clock):
    account.begin_step()
    clock.now += 2
    account.mark(Part.ATTENTION)
    clock.now += 3
    account.mark(Part.CPU_EXPERTS)
    clock.now += 1
    account.end_step()
    split = account.snapshot()
    assert (split.steps, split.whole) == (1, 6)
    assert split.parts[Part.ATTENTION] == 2
    assert split.parts[Part.CPU_EXPERTS] == 3
    assert split.parts[Part.PYTHON] == 1


def test_time_between_steps_is_the_programs_own_unless_it_paused(account, clock):
    for pause in (False, True):
        account.begin_step()
        clock.now += 1
        account.mark(Part.ATTENTION)
        account.end_step()
        clock.now += 10
        if pause:
            account.pause()
    account.begin_step()
    account.end_step()
    split = account.snapshot()
    assert split.steps == 3
    assert split.whole == pytest.approx(12)  # 1, 10 + 1, 0
    assert split.parts[Part.PYTHON] == pytest.approx(10)


def test_shares_take_no_more_than_passed(account, clock):
    account.begin_step()
    clock.now += 5
    account.mark_parts(
        ((Part.COPIES, -1.0), (Part.GPU_EXPERTS, 2.0), (Part.ATTENTION, 9.0)), Part.ROUTER_SYNC
    )
    account.end_step()
    parts = account.snapshot().parts
    assert (parts[Part.COPIES], parts[Part.GPU_EXPERTS], parts[Part.ATTENTION]) == (0, 2, 3)
    assert parts[Part.ROUTER_SYNC] == 0


def test_a_step_that_is_not_counted_leaves_no_trace(account, clock):
    account.begin_step()
    clock.now += 5
    account.mark(Part.ATTENTION)
    account.end_step(counted=False)
    assert account.snapshot() == TimeSplit()


def test_a_difference_is_what_was_added(account, clock):
    before = account.snapshot()
    account.begin_step()
    clock.now += 0.25
    account.mark(Part.COPIES)
    account.end_step()
    added = account.snapshot().since(before)
    assert added.microseconds()["copies"] == pytest.approx(250_000)
    assert before.microseconds() == {}


marks = st.tuples(
    st.floats(0, 1),
    st.lists(st.tuples(st.sampled_from(Part), st.floats(-1, 1)), max_size=3),
    st.sampled_from(Part),
)


@given(st.lists(st.tuples(st.lists(marks, max_size=5), st.floats(0, 1), st.booleans()), max_size=6))
def test_the_parts_add_up(steps):
    clock = Clock()
    account = TimeAccount(clock)
    started = clock.now
    for cuts, between, _ in steps:
        account.begin_step()
        for passed, shares, rest in cuts:
            clock.now += passed
            account.mark_parts(shares, rest)
        account.end_step()
        clock.now += between
    split = account.snapshot()
    assert sum(split.parts.values()) == pytest.approx(split.whole)
    trailing = steps[-1][1] if steps else 0.0
    assert split.whole == pytest.approx(clock.now - started - trailing)


def test_every_part_has_words():
    assert len({part.text for part in Part}) == len(Part)
