"""How long a decode step is expected to take: an average over which of the chosen experts are on the GPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.latency import LatencyModel
from engine.policy import decide

_PANELS = 64  # pieces of an expert that this prediction divides it into: 1.6 % of it, finer than its error


def decode_step_seconds(
    latency: LatencyModel,
    resident: npt.NDArray[np.bool_],
    popularity: npt.NDArray[np.float64],
    policy: str = "makespan",
) -> float:
    """Expected time of a decode step with one token.

    `resident` is bool [layers, experts]; `popularity` [layers, experts] is the chance that a token chooses
    the expert (rows sum to top-k). In each layer, of the top-k experts some are missing on the GPU: the time
    is the average over how many, each with what the policy then does. Without a GPU experts run one after the
    other.
    """
    top_k = max(1, round(float(popularity.sum(axis=1).mean())))
    if not latency.has_gpu:
        return latency.other_decode + float(popularity.sum()) * latency.cpu_lat(1)
    times = [_layer_seconds(latency, policy, top_k - missing, missing) for missing in range(top_k + 1)]
    chances = (missing_chances(row, held, top_k) for row, held in zip(popularity, resident, strict=True))
    return latency.other_decode + sum(float(chance @ times) for chance in chances)


def missing_chances(
    popularity: npt.NDArray[np.float64], resident: npt.NDArray[np.bool_], top_k: int
) -> npt.NDArray[np.float64]:
    """The chance that 0, 1, … top_k of a token's experts are not resident, float64 [top_k + 1].

    A set of top_k experts is taken to be as likely as the product of its experts' odds (conditional Poisson
    sampling), which gives the hypergeometric distribution where all are equally popular.
    """
    chance = np.clip(popularity, 1e-9, 1 - 1e-6)
    odds = chance / (1 - chance)
    # Coefficient j of the product of (1 + odds x): the weight of all sets of j experts.
    held, missing = (_set_weights(odds[which], top_k) for which in (resident, ~resident))
    weights = missing * held[::-1]
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


def _set_weights(odds: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    weights = np.zeros(size + 1)
    weights[0] = 1.0
    for each in odds:
        weights[1:] += each * weights[:-1]
    return weights


def _layer_seconds(latency: LatencyModel, policy: str, at_gpu: int, missing: int) -> float:
    """A layer's experts, so many of them on the GPU and so many not."""
    resident = np.arange(at_gpu + missing) < at_gpu
    plan = decide(policy, resident, np.ones(at_gpu + missing, dtype=np.int64), latency, _PANELS)
    return plan.seconds
