"""Sampling keeps the tokens that transformers' logits processors keep, and seeded draws repeat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.errors import GenerationError
from engine.generation.sampling import Sampler, distribution, penalised
from engine.params import SamplingParams

Logits = npt.NDArray[np.float32]


@st.composite
def random_logits(draw: st.DrawFn) -> Logits:
    size = draw(st.integers(2, 400))
    spread = draw(st.floats(0.1, 12))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return (random.standard_normal(size) * spread).astype(np.float32)


@st.composite
def sampling(draw: st.DrawFn) -> SamplingParams:
    return SamplingParams(
        temperature=draw(st.floats(0.05, 3)),
        top_k=draw(st.integers(0, 60)),
        # Next to 1 the border lies among masses that are all rounding: there no two sums agree.
        top_p=draw(st.just(1.0) | st.floats(0.05, 1 - 1e-9)),
        min_p=draw(st.floats(0, 0.9)),
        repetition_penalty=draw(st.floats(0.5, 2)),
    )


def reference(logits: Logits, params: SamplingParams, seen: list[int], dtype: torch.dtype) -> torch.Tensor:
    """Scores [vocabulary] after transformers' processors, -inf where a token was filtered out."""
    processors = LogitsProcessorList()
    if params.repetition_penalty != 1:
        processors.append(RepetitionPenaltyLogitsProcessor(params.repetition_penalty))
    processors.append(TemperatureLogitsWarper(params.temperature))
    if params.top_k:
        processors.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        processors.append(TopPLogitsWarper(params.top_p))
    if params.min_p:
        processors.append(MinPLogitsWarper(params.min_p))
    scores = torch.from_numpy(logits.copy()).to(dtype)[None]
    return processors(torch.tensor([seen], dtype=torch.int64), scores)[0]


@settings(max_examples=300, deadline=None)
@given(random_logits(), sampling(), st.data())
def test_the_filters_keep_what_transformers_keeps(
    logits: Logits, params: SamplingParams, data: st.DataObject
) -> None:
    seen = data.draw(st.lists(st.integers(0, len(logits) - 1), min_size=1, max_size=20))
    expected = reference(logits, params, seen, torch.float64)
    # A token whose mass lies on top-p's or min-p's border may fall on either side by rounding: both
    # references must agree before ours is compared.
    assume(torch.equal(expected.isinf(), reference(logits, params, seen, torch.float32).isinf()))
    tokens, probabilities = distribution(penalised(logits, params.repetition_penalty, set(seen)), params)
    assert tokens.tolist() == torch.nonzero(~expected.isinf())[:, 0].tolist()
    np.testing.assert_allclose(probabilities, expected.softmax(0)[torch.from_numpy(tokens)], rtol=1e-4)


@settings(max_examples=60, deadline=None)
@given(random_logits(), st.floats(0.5, 2), st.data())
def test_the_repetition_penalty_is_that_of_transformers(
    logits: Logits, penalty: float, data: st.DataObject
) -> None:
    seen = data.draw(st.lists(st.integers(0, len(logits) - 1), min_size=1, max_size=30))
    processor = RepetitionPenaltyLogitsProcessor(penalty)
    expected = processor(torch.tensor([seen]), torch.from_numpy(logits.copy())[None])[0]
    np.testing.assert_allclose(penalised(logits, penalty, set(seen)), expected, rtol=1e-6)


def test_a_tiny_temperature_is_as_good_as_greedy() -> None:
    logits = np.array([-3.0, 1.5, 1.25, -np.inf], dtype=np.float32)
    tokens, probabilities = distribution(logits, SamplingParams(temperature=1e-310))
    assert dict(zip(tokens.tolist(), probabilities.tolist(), strict=True)) == {0: 0, 1: 1, 2: 0, 3: 0}


@given(random_logits())
def test_greedy_takes_the_most_likely_token_and_has_no_seed(logits: Logits) -> None:
    sampler = Sampler(SamplingParams(temperature=0))
    assert sampler.draw(logits) == int(torch.from_numpy(logits).argmax())
    assert sampler.seed is None


def test_greedy_avoids_a_seen_token_when_penalised() -> None:
    logits = np.array([1.0, 2.0, 1.9], dtype=np.float32)
    sampler = Sampler(SamplingParams(temperature=0, repetition_penalty=1.5))
    assert sampler.draw(logits) == 1
    sampler.see([1])
    assert sampler.draw(logits) == 2


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others() -> None:
    logits = np.random.default_rng(1).standard_normal(200).astype(np.float32)

    def draws(seed: int | None) -> tuple[list[int], int | None]:
        sampler = Sampler(SamplingParams(temperature=1, seed=seed))
        return [sampler.draw(logits) for _ in range(50)], sampler.seed

    assert draws(7) == draws(7)
    assert draws(7)[0] != draws(8)[0]
    fresh, seed = draws(None)
    assert draws(seed) == (fresh, seed)


def test_draws_follow_the_distribution() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.2], dtype=np.float32))
    sampler = Sampler(SamplingParams(temperature=1, seed=3))
    counts = np.bincount([sampler.draw(logits) for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(counts, [0.5, 0.3, 0.2], atol=0.03)


@given(random_logits(), sampling(), st.integers(0, 1000))
def test_a_draw_is_always_one_of_the_survivors(logits: Logits, params: SamplingParams, seed: int) -> None:
    survivors, _ = distribution(logits, params)
    sampler = Sampler(
        SamplingParams(params.temperature, params.top_k, params.top_p, params.min_p, 1.0, seed=seed)
    )
    assert sampler.draw(logits) in survivors


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_that_are_not_numbers_are_an_error(bad: float, temperature: float) -> None:
    logits = np.zeros(50, dtype=np.float32)
    logits[17] = bad
    with pytest.raises(GenerationError, match="not a number") as caught:
        Sampler(SamplingParams(temperature=temperature)).draw(logits)
    assert caught.value.why
    assert caught.value.action


def test_forbidden_tokens_are_allowed_in_logits() -> None:
    logits = np.full(50, -np.inf, dtype=np.float32)
    logits[17] = 0
    assert Sampler(SamplingParams(temperature=1, top_p=0.9, min_p=0.1)).draw(logits) == 17


@pytest.mark.parametrize("size", [1, 3, 4, 7])
@pytest.mark.parametrize("top_p", [5e-324, 1e-17, 1e-6, 1 - 2**-53])
def test_the_least_top_p_keeps_one_of_equally_likely_tokens(size: int, top_p: float) -> None:
    tokens, probabilities = distribution(np.zeros(size, dtype=np.float32), SamplingParams(top_p=top_p))
    assert len(tokens) == (1 if top_p < 0.5 else size)
    assert probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("penalty", [5e-324, 1e-300, 1e-38, 10])
@pytest.mark.parametrize("temperature", [5e-324, 1.0, 10.0])
@pytest.mark.parametrize("largest", [3.4e38, 25, -5])
def test_the_limits_of_the_repetition_penalty_leave_numbers(
    penalty: float, temperature: float, largest: float
) -> None:
    logits = np.array([largest, 20, -3.4e38, -np.inf, 0], dtype=np.float32)
    scores = penalised(logits, penalty, {1, 2, 3})
    tokens, probabilities = distribution(scores, SamplingParams(temperature=temperature))
    assert np.isfinite(scores.max())
    assert probabilities.sum() == pytest.approx(1)
    assert tokens[probabilities.argmax()] == scores.argmax() == (1 if penalty < 1 or largest < 0 else 0)
