"""Choosing the next token from the logits: penalty, temperature, top-k, top-p, min-p, and a seeded draw.

The filters keep the tokens that transformers' logits processors keep. They work in float64, and top-p sorts
only the tokens that can survive it.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

from engine.errors import GenerationError
from engine.params import SamplingParams

FloatArray = npt.NDArray[np.float64]


class Sampler:
    """Draws one answer's tokens. The same seed, parameters and logits give the same tokens."""

    def __init__(self, params: SamplingParams) -> None:
        self._params = params
        self.seed: int | None = None  # what the answer can be repeated with; None when greedy
        self._seen: set[int] = set()
        if not params.greedy:
            self.seed = secrets.randbits(63) if params.seed is None else params.seed
            self._random = np.random.Generator(np.random.PCG64(self.seed))

    def see(self, token_ids: list[int]) -> None:
        """Count `token_ids` (the prompt, or a drawn token) among those the repetition penalty applies to."""
        if self._params.repetition_penalty != 1:
            self._seen.update(token_ids)

    def draw(self, logits: npt.NDArray[np.float32]) -> int:
        """The next token for `logits` [vocabulary]. Raises GenerationError if they are not usable numbers."""
        scores = self._scores(logits)
        if self._params.greedy:
            return int(scores.argmax())
        tokens, probabilities = distribution(scores, self._params)
        cumulative = probabilities.cumsum()
        place = np.searchsorted(cumulative, self._random.random() * cumulative[-1], side="right")
        return int(tokens[min(int(place), len(tokens) - 1)])

    def _scores(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        check_usable(logits)
        if not self._seen:
            return logits
        return penalised(logits, self._params.repetition_penalty, self._seen)


def check_usable(logits: npt.NDArray[np.float32]) -> None:
    """Raise GenerationError if a logit is not a number, or the largest is infinite."""
    if not np.isfinite(logits.max()):  # a maximum is NaN if any logit is
        raise GenerationError(
            "The model's output is not a number.",
            why="The weights may be damaged, or this model overflows in the chosen precision.",
            action="Check the model's files by downloading or converting them again.",
        )


def penalised(logits: npt.NDArray[np.float32], penalty: float, seen: set[int]) -> npt.NDArray[np.float32]:
    """A copy of `logits`: scores of `seen` tokens divided by `penalty`, negative ones multiplied by it.

    They stay numbers, however small the penalty is.
    """
    ids = np.fromiter(seen, dtype=np.int64, count=len(seen))
    scores = logits.copy()
    with np.errstate(over="ignore"):
        own = scores[ids].astype(np.float64)
        changed = np.where(own < 0, own * penalty, own / penalty)
        scores[ids] = np.minimum(changed, np.finfo(np.float32).max)
    return scores


def distribution(
    scores: npt.NDArray[np.float32], params: SamplingParams
) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The tokens that survive the filters, in id order, and their probabilities (which sum to 1).

    `scores` [vocabulary] are logits after the repetition penalty; `params.temperature` is above 0.
    """
    with np.errstate(over="ignore"):  # a tiny temperature sends all but the best to minus infinity
        scaled = (scores.astype(np.float64) - float(scores.max())) / params.temperature
    tokens = np.arange(len(scaled))
    if 0 < params.top_k < len(scaled):
        least = np.partition(scaled, -params.top_k)[-params.top_k]  # ties stay, as in transformers
        tokens = np.flatnonzero(scaled >= least)
    probabilities = _normalised(np.exp(scaled[tokens]))
    if params.top_p < 1:
        kept = _nucleus(probabilities, params.top_p)
        tokens, probabilities = tokens[kept], _normalised(probabilities[kept])
    if params.min_p > 0:
        kept = np.flatnonzero(probabilities >= params.min_p * probabilities.max())
        tokens, probabilities = tokens[kept], _normalised(probabilities[kept])
    return tokens, probabilities


def _nucleus(probabilities: FloatArray, top_p: float) -> npt.NDArray[np.intp]:
    """Places of the smallest set of most likely tokens whose mass reaches `top_p`; at least one.

    Seen from below: a token goes if it and all less likely ones have at most 1 - top_p. One whose
    probability is under (1 - top_p) / n is always among those that go, which leaves few to sort.
    """
    spare = 1.0 - top_p
    over_average = probabilities * len(probabilities) > spare
    likely = np.flatnonzero(over_average | (probabilities == probabilities.max()))  # at least these
    below = 1.0 - probabilities[likely].sum()
    order = np.argsort(probabilities[likely], kind="stable")
    mass = below + probabilities[likely][order].cumsum()
    kept = mass > spare
    kept[-1] = True
    return np.sort(likely[order[kept]])


def _normalised(weights: FloatArray) -> FloatArray:
    result: FloatArray = weights / weights.sum()
    return result
