from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.placement import (
    Placement,
    place_calibrated,
    place_nothing,
    place_popular,
    place_uniform,
)

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


@given(popularity=popularities(), slots=st.integers(0, 60), whole=st.sampled_from([0.0, 0.05, 0.3, 2.0]))
@settings(max_examples=60)
def test_no_other_placement_is_worth_more(popularity: Table, slots: int, whole: float) -> None:
    """By trying how many experts each layer could have, the most popular ones of it."""
    popularity = popularity[:3, :5]
    slots = min(slots, popularity.size)

    def worth(resident: npt.NDArray[np.bool_]) -> float:
        return float(popularity[resident].sum() + whole * resident.all(axis=1).sum())

    def best(layer: int, left: int) -> float:
        if layer == len(popularity):
            return 0.0 if left == 0 else -np.inf
        ordered = np.sort(popularity[layer])[::-1]
        return max(
            float(ordered[:count].sum()) + whole * (count == len(ordered)) + best(layer + 1, left - count)
            for count in range(min(len(ordered), left) + 1)
        )

    placement = place_popular(popularity, slots, whole)
    assert placement.count == slots
    assert worth(placement.resident) == pytest.approx(best(0, slots), abs=1e-6)


@given(layers=st.integers(1, 9), experts=st.integers(1, 9), slots=st.integers(0, 90))
def test_what_nothing_is_known_of_is_whole_layers_and_an_even_rest(
    layers: int, experts: int, slots: int
) -> None:
    per_layer = place_uniform(layers, experts, slots).resident.sum(axis=1)
    whole = per_layer == experts
    assert per_layer.sum() == min(slots, layers * experts)
    assert whole.sum() == min(slots, layers * experts) // experts
    rest = per_layer[~whole]
    assert rest.size == 0 or rest.max() - rest.min() <= 1


def test_whole_layers_lie_apart() -> None:
    whole = place_uniform(32, 8, 64).resident.all(axis=1)
    assert np.diff(np.flatnonzero(whole)).min() >= 2
    missing = ~place_uniform(32, 8, 216).resident.all(axis=1)
    assert np.diff(np.flatnonzero(missing)).min() >= 2


def test_a_whole_layer_counts_more_where_the_cpu_is_fast() -> None:
    popularity = np.asarray([[0.5, 0.5, 0.2], [0.5, 0.5, 0.4], [0.6, 0.5, 0.3]])
    assert place_calibrated(popularity, 6, 100.0).resident.sum(axis=1).tolist() == [2, 2, 2]
    assert place_calibrated(popularity, 6, 1e-4).resident.sum(axis=1).tolist() == [0, 3, 3]


def test_one_place_goes_to_the_most_popular_and_none_to_nobody() -> None:
    popularity = np.asarray([[1.5, 0.5], [1.0, 1.0]])
    assert place_popular(popularity, 1).resident.tolist() == [[True, False], [False, False]]
    assert place_nothing(2, 3).resident.tolist() == [[False] * 3] * 2


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="slots"):
        place_popular(np.ones((2, 2)), -1)
    with pytest.raises(ValueError, match="boolean"):
        Placement(np.ones((2, 2)))  # type: ignore[arg-type]


@given(layers=st.integers(1, 9), experts=st.integers(1, 9), slots=st.integers(0, 90))
def test_where_whole_layers_are_worth_nothing_equals_are_spread(
    layers: int, experts: int, slots: int
) -> None:
    per_layer = place_popular(np.ones((layers, experts)), slots).resident.sum(axis=1)
    assert per_layer.max() - per_layer.min() <= 1
