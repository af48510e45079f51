"""Set routing: distinct experts, the popularity and reuse that were asked for, and the same for a seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.models.router import route
from engine.models.routing_source import RoutingSource

MANY = 20000


def shares(source: RoutingSource, layer: int) -> np.ndarray:
    ids = source.choose(layer, MANY).numpy()
    return np.bincount(ids.ravel(), minlength=source.experts) / MANY


@given(
    st.integers(1, 4),
    st.integers(2, 9),
    st.floats(0, 3),
    st.floats(0, 1),
    st.integers(0, 99),
    st.integers(1, 200),
    st.data(),
)
def test_a_tokens_experts_are_distinct_and_exist(
    layers: int, experts: int, zipf: float, reuse: float, seed: int, tokens: int, data: st.DataObject
) -> None:
    top_k = data.draw(st.integers(1, experts))
    source = RoutingSource(layers, experts, top_k, zipf=zipf, reuse=reuse, seed=seed)
    ids = source.choose(layers - 1, tokens)
    steps = source.next_step(3)
    assert ids.dtype == steps.dtype == torch.int32
    assert ids.shape == (tokens, top_k)
    assert steps.shape == (layers, 3, top_k)
    for table in (ids.view(-1, top_k), steps.view(-1, top_k)):
        assert 0 <= int(table.min()) <= int(table.max()) < experts
        assert all(len(set(row)) == top_k for row in table.tolist())


def test_all_experts_are_alike_without_zipf() -> None:
    source = RoutingSource(2, 8, 2, seed=5)
    np.testing.assert_allclose(shares(source, 1), 0.25, atol=0.02)


@pytest.mark.parametrize("reuse", [0.0, 0.6])
def test_popularity_is_what_the_exponent_says_with_reuse_or_without(reuse: float) -> None:
    source = RoutingSource(1, 8, 1, zipf=1.0, reuse=reuse, seed=1)
    expected = np.sort(1 / np.arange(1, 9) / (1 / np.arange(1, 9)).sum())
    np.testing.assert_allclose(np.sort(shares(source, 0)), expected, atol=0.03)


def test_favourites_have_the_first_ranks() -> None:
    favourites = np.zeros((3, 8), dtype=np.bool_)
    favourites[0, [1, 6]] = favourites[1, 3] = True
    source = RoutingSource(3, 8, 2, zipf=1.0, favourites=favourites)
    assert set(np.argsort(-shares(source, 0))[:2]) == {1, 6}
    assert shares(source, 1).argmax() == 3


def test_reuse_repeats_the_token_before() -> None:
    source = RoutingSource(1, 64, 4, reuse=0.5, seed=3)  # by chance alone a set hardly ever comes twice
    ids = source.choose(0, MANY).numpy()
    same = (ids[1:] == ids[:-1]).all(axis=1)
    assert same.mean() == pytest.approx(0.5, abs=0.02)


def test_with_full_reuse_nothing_changes_from_the_prompt_on() -> None:
    source = RoutingSource(2, 8, 2, reuse=1.0)
    prompt = [source.choose(layer, 5) for layer in range(2)]
    one, three = source.next_step(1), source.next_step(3)
    for layer, ids in enumerate(prompt):
        assert (ids == ids[-1]).all()
        assert (one[layer] == ids[-1]).all()
        assert (three[layer] == ids[-1]).all()


def test_rows_of_a_batch_go_their_own_ways() -> None:
    source = RoutingSource(1, 64, 2, reuse=0.5, seed=7)
    source.choose(0, 1)
    steps = torch.stack([source.next_step(2)[0] for _ in range(200)])
    same = (steps[1:] == steps[:-1]).all(dim=2).float().mean(dim=0)
    assert ((same > 0.35) & (same < 0.65)).all()
    assert not (steps[:, 0] == steps[:, 1]).all(dim=1).float().mean() > 0.5


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5), st.floats(0, 1))
def test_a_prompt_in_chunks_gets_the_same_experts(chunks: list[int], reuse: float) -> None:
    whole = RoutingSource(2, 8, 2, reuse=reuse, seed=9).choose(1, sum(chunks))
    source = RoutingSource(2, 8, 2, reuse=reuse, seed=9)
    assert (torch.cat([source.choose(1, count) for count in chunks]) == whole).all()


def test_restarting_gives_the_same_again_and_another_seed_does_not() -> None:
    source = RoutingSource(3, 8, 2, zipf=0.5, reuse=0.2, seed=1)

    def draw(source: RoutingSource) -> torch.Tensor:
        prompt = torch.cat([source.choose(layer, 30) for layer in range(3)])
        steps = torch.cat([source.next_step(1).flatten(0, 1) for _ in range(100)])
        return torch.cat((prompt, steps))

    first = draw(source)
    source.restart()
    assert (draw(source) == first).all()
    assert (draw(RoutingSource(3, 8, 2, zipf=0.5, reuse=0.2, seed=2)) != first).any()


def test_a_step_does_not_change_after_it_was_given() -> None:
    source = RoutingSource(2, 8, 2)
    step = source.next_step(1)
    before = step.clone()
    source.choose(0, 10)
    assert (step == before).all()


@pytest.mark.parametrize(
    ("experts", "top_k", "zipf", "reuse"), [(4, 5, 0, 0), (4, 0, 0, 0), (4, 2, -1, 0), (4, 2, 0, 1.5)]
)
def test_impossible_routing_is_refused(experts: int, top_k: int, zipf: float, reuse: float) -> None:
    with pytest.raises(ValueError, match=r"experts cannot be|no routing"):
        RoutingSource(2, experts, top_k, zipf=zipf, reuse=reuse)


def test_forced_experts_are_weighted_by_their_own_logits() -> None:
    x, router = torch.randn(5, 16), torch.randn(8, 16)
    forced = RoutingSource(1, 8, 3).choose(0, 5).long()
    ids, weights = route(x, router, 3, forced)
    expected = torch.softmax((x.double() @ router.double().T).gather(1, forced), dim=1)
    assert (ids == forced).all()
    torch.testing.assert_close(weights, expected.float())
