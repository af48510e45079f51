"""Router rows: wanted popularity, dependence on the token, and the same rows every time."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.starter.recipe import RouterRecipe
from engine.starter.router import pair_rows

TOKENS, WIDTH = 800, 48


def recipe(**changes: object) -> RouterRecipe:
    values: dict[str, object] = {
        "seed": 1, "shares": (0.4, 0.3, 0.2, 0.1), "spread": 0.0, "scale": 4.0, "ridge": 0.01,
    }  # fmt: skip
    return RouterRecipe(**{**values, **changes})  # type: ignore[arg-type]


def states(seed: int, tokens: int = TOKENS) -> torch.Tensor:
    """Hidden states as models have them: off the origin, and a few dimensions much larger than the rest."""
    random = torch.Generator().manual_seed(seed)
    scale = torch.ones(WIDTH)
    scale[:3] = 20
    return (torch.randn(tokens, WIDTH, generator=random) + 0.7) * scale


def winners(rows: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
    return torch.bincount((hidden @ rows.float().T).argmax(-1), minlength=len(rows)) / len(hidden)


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 10_000),
    layer=st.integers(0, 60),
    shares=st.lists(st.floats(0.1, 1), min_size=2, max_size=5),
)
def test_pairs_win_the_wanted_share_of_the_tokens(seed: int, layer: int, shares: list[float]) -> None:
    wanted = torch.tensor(shares) / sum(shares)
    hidden = states(seed)
    rows = pair_rows(hidden, recipe(seed=seed, shares=tuple(wanted.tolist())), layer)
    assert rows.dtype == torch.bfloat16
    assert rows.shape == (len(shares), WIDTH)
    assert (winners(rows, hidden) - wanted).abs().max() <= 0.04


def test_unseen_tokens_of_the_same_kind_are_shared_alike() -> None:
    rows = pair_rows(states(1), recipe(), 0)
    assert (winners(rows, states(2)) - torch.tensor([0.4, 0.3, 0.2, 0.1])).abs().max() <= 0.12


def test_single_layers_differ_by_the_spread() -> None:
    hidden = states(3)
    layers = torch.stack(
        [winners(pair_rows(hidden, recipe(spread=0.5), layer), hidden) for layer in range(8)]
    )
    assert layers.std(0).min() > 0.02


@pytest.mark.parametrize("changes", [{"seed": 2}, {"scale": 1.0}])
def test_rows_are_reproducible_and_follow_the_recipe(changes: dict[str, object]) -> None:
    hidden = states(4)
    rows = pair_rows(hidden, recipe(), 5)
    assert torch.equal(rows, pair_rows(hidden.clone(), recipe(), 5))
    assert not torch.equal(rows, pair_rows(hidden, recipe(**changes), 5))
    assert not torch.equal(rows, pair_rows(hidden, recipe(), 6))
