"""Running out of the GPU's memory: smaller budgets and shorter chunks, with errors that are injected."""

import itertools
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.oom import with_smaller_budgets, with_smaller_chunks


def needs(limit, asked):
    """A function that fails, as CUDA does, where more than `limit` is asked."""

    def run(amount):
        asked.append(amount)
        if amount > limit:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return f"done with {amount}"

    return run


@pytest.mark.parametrize(("limit", "attempts"), [(1000, 1), (999, 2), (810, 3), (729, 4)])
def test_loading_takes_a_tenth_less_each_time(limit, attempts):
    asked, freed = [], []
    result, budget = with_smaller_budgets(needs(limit, asked), 1000, lambda: freed.append(len(asked)))
    assert asked == [1000, 900, 810, 729][:attempts]
    assert budget == asked[-1]
    assert result == f"done with {budget}"
    assert freed == list(range(1, attempts))  # between the attempts


def test_loading_gives_up_after_four_attempts():
    asked = []
    with pytest.raises(torch.OutOfMemoryError):
        with_smaller_budgets(needs(10, asked), 1000)
    assert len(asked) == 4


def test_other_errors_are_not_tried_again():
    for function in (with_smaller_budgets, with_smaller_chunks):
        asked = []

        def fail(amount, asked=asked):
            asked.append(amount)
            raise ValueError("a fault")

        with pytest.raises(ValueError, match="a fault"):
            function(fail, 1000)
        assert asked == [1000]


def test_a_failed_attempt_is_gone_before_the_next_begins():
    """The exception refers to the frames in which it was raised, and they to gigabytes."""

    refs = []

    def load(budget):
        assert all(ref() is None for ref in refs)
        held = torch.empty(10)
        refs.append(weakref.ref(held))
        if len(refs) < 3:
            raise torch.OutOfMemoryError(f"not {budget}")
        return budget

    assert with_smaller_budgets(load, 1000) == (810, 810)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 64))
def test_chunks_are_halved_until_one_fits(chunk, limit, least):
    asked = []
    run = needs(limit, asked)
    if limit < min(chunk, least):
        with pytest.raises(torch.OutOfMemoryError):
            with_smaller_chunks(run, chunk, lambda: None, least)
        return
    _, fitted = with_smaller_chunks(run, chunk, lambda: None, least)
    assert fitted == asked[-1] <= limit
    assert all(after == max(least, before // 2) for before, after in itertools.pairwise(asked))
