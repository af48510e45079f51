"""How often each expert is chosen, from reading a text of prose, code and conversation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import torch

from engine.calibration.stand_ins import CountedRouting
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.models.mixtral import MixtralModel

PROFILE_TEXT = "calibration/profile.txt"
_CHUNK = 128  # tokens between two looks at the clock and at a cancel
# A large model on a small computer reads a few tokens per second: it stops early, with fewer counts.
_PATIENCE = 60.0
_LEAST_TOKENS = 256


@dataclass(frozen=True)
class Popularity:
    """`table` is float64 [layers, experts], the chance that a token chooses the expert; rows sum to top-k."""

    table: npt.NDArray[np.float64]
    tokens: int
    seconds: float  # per token


def read_popularity(
    model: MixtralModel, tokens: Sequence[int], before_chunk: Callable[[int], None]
) -> Popularity:
    """Read `tokens` (at least one) and count the routers' choices.

    `before_chunk` is told how many tokens have been read; it may raise to leave. Reading stops after about a
    minute, but not before 256 tokens.
    """
    counted = CountedRouting(model.executor)
    # A stand-in with the one method that the model calls.
    reader = MixtralModel(model.config, model.weights, cast(ExpertExecutor, counted), model.device)
    text = list(tokens[: model.config.max_position_embeddings])
    cache = reader.new_cache(len(text))
    started = time.perf_counter()
    for start in range(0, len(text), _CHUNK):
        if start >= _LEAST_TOKENS and time.perf_counter() - started > _PATIENCE:
            break
        before_chunk(start)
        reader.forward(torch.tensor(text[start : start + _CHUNK]), cache, logits="none", phase=Phase.PREFILL)
    seconds = (time.perf_counter() - started) / counted.tokens
    return Popularity(counted.popularity(), counted.tokens, seconds)
