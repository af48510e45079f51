from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.placement import Placement, place_nothing, place_popular, place_uniform

Table = npt.NDArray[np.float64]


@st.composite
def popularities(draw: Any) -> Table:
    layers, experts = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    values = draw(st.lists(st.integers(0, 20), min_size=layers * experts, max_size=layers * experts))
    return np.asarray(values, dtype=np.float64).reshape(layers, experts) / 10


@given(popularity=popularities(), slots=st.integers(0, 60))
def test_the_most_popular_are_placed(popularity: Table, slots: int) -> None:
    placement = place_popular(popularity, slots)
    assert placement.count == min(slots, popularity.size)
    inside, outside = popularity[placement.resident], popularity[~placement.resident]
    if inside.size and outside.size:
        assert inside.min() >= outside.max()


@given(popularity=popularities(), slots=st.integers(0, 60), seed=st.integers(0, 2**32))
def test_popular_placement_is_hit_at_least_as_often_as_any_other(
    popularity: Table, slots: int, seed: int
) -> None:
    best = place_popular(popularity, slots)
    layers, experts = popularity.shape
    order = np.random.default_rng(seed).permutation(popularity.size)
    hits = [popularity.ravel()[order[:slots]].sum()]
    hits.append(popularity[place_uniform(layers, experts, slots).resident].sum())
    assert popularity[best.resident].sum() >= max(hits) - 1e-12


@given(popularity=popularities(), slots=st.integers(0, 60))
def test_a_larger_budget_keeps_what_a_smaller_one_placed(popularity: Table, slots: int) -> None:
    small, large = place_popular(popularity, slots), place_popular(popularity, slots + 1)
    assert not (small.resident & ~large.resident).any()


@given(layers=st.integers(1, 9), experts=st.integers(1, 9), slots=st.integers(0, 90))
def test_uniform_placement_is_even(layers: int, experts: int, slots: int) -> None:
    per_layer = place_uniform(layers, experts, slots).resident.sum(axis=1)
    assert per_layer.max() - per_layer.min() <= 1


def test_one_place_goes_to_the_most_popular_and_none_to_nobody() -> None:
    popularity = np.asarray([[1.5, 0.5], [1.0, 1.0]])
    assert place_popular(popularity, 1).resident.tolist() == [[True, False], [False, False]]
    assert place_nothing(2, 3).resident.tolist() == [[False] * 3] * 2


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="slots"):
        place_popular(np.ones((2, 2)), -1)
    with pytest.raises(ValueError, match="boolean"):
        Placement(np.ones((2, 2)))  # type: ignore[arg-type]
