"""Router rows for a model that was trained without a router.

Each pair of experts gets one row. It is a random combination of the calibration text's hidden states, so its
logit varies from token to token along directions that the model uses, plus a multiple of a direction whose
product with every hidden state is close to 1: a bias, which Mixtral's router does not have. The bias is
turned until the pair's share of the tokens is the one wanted.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from engine.starter.recipe import RouterRecipe

_ROUNDS = 300  # the shares settle to within a token or two after about 150


def pair_rows(hidden: Tensor, recipe: RouterRecipe, layer: int) -> Tensor:
    """One router row per pair, bf16 [pairs, hidden], from hidden states [tokens, hidden] of `layer`.

    The hidden states are the router's inputs (after the second norm). Equal inputs give equal rows up to
    rounding: random numbers come from numpy's PCG64, and nothing depends on the order of eigenvectors.
    """
    random = np.random.default_rng([recipe.seed, layer])
    shares = _layer_shares(recipe, random)
    states = hidden.double()
    centred = states - states.mean(0)
    # Dividing by the variance keeps the few dimensions with huge activations from deciding alone.
    mix = torch.from_numpy(random.standard_normal((len(shares), len(states))))
    rows = mix @ centred / centred.square().mean(0)
    rows = rows * (recipe.scale / (centred @ rows.T).std(0))[:, None]
    bias = _bias_direction(states, recipe.ridge)
    offsets = _balance(states @ rows.T, states @ bias, shares)
    return (rows + offsets[:, None] * bias).to(torch.bfloat16)


def _layer_shares(recipe: RouterRecipe, random: np.random.Generator) -> Tensor:
    """The wanted shares of one layer: the recipe's, each multiplied by a random factor, summing to 1."""
    factors = np.exp(recipe.spread * random.standard_normal(len(recipe.shares)))
    shares = np.array(recipe.shares) * factors
    return torch.from_numpy(shares / shares.sum())


def _bias_direction(states: Tensor, ridge: float) -> Tensor:
    """The vector whose product with the states is closest to 1: ridge regression on a constant."""
    tokens, width = states.shape
    gram = states.T @ states / tokens
    gram += ridge * gram.diagonal().mean() * torch.eye(width, dtype=states.dtype)
    direction: Tensor = torch.linalg.solve(gram, states.mean(0))
    return direction


def _balance(logits: Tensor, ones: Tensor, shares: Tensor) -> Tensor:
    """The multiples of the bias direction at which pair p wins a share `shares[p]` of the tokens.

    `logits` is [tokens, pairs] without bias; `ones` [tokens] is the bias direction's product with each token.
    """
    offsets = torch.zeros_like(shares)
    step = float(logits.std())
    for round_ in range(_ROUNDS):
        winners = (logits + ones[:, None] * offsets).argmax(-1)
        won = torch.bincount(winners, minlength=len(shares)) / len(logits)
        offsets += step / (1 + round_ / 10) * (shares - won)
    return offsets - offsets.mean()
