"""Beam search finds what transformers finds: the same answers, token for token, with the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import MixtralForCausalLM

from engine.events import Answer, Finished, FinishReason, Phase
from engine.generation.beam_loop import generate_beams
from engine.generation.request import Request
from engine.models.loader import LoadedModel, load_model
from engine.options import LoadOptions
from engine.params import GenerationParams, SamplingParams
from engine.session import Session
from kernels.cpu import Isa
from kernels.isa import available_isas
from tests.engine.generation.scripted import GlyphStream, tokens_in

VOCABULARY = 61
PROMPTS = ([5], [3, 17, 44, 9, 0, 21, 33], list(range(40, 12, -2)))


@dataclass(frozen=True)
class Pair:
    """A model of ours and the same one in transformers."""

    ours: LoadedModel
    reference: MixtralForCausalLM

    def expected(self, prompt: list[int], params: GenerationParams, ends: tuple[int, ...]) -> list[Any]:
        """transformers' answers, tokens without padding, and their scores."""
        ids = torch.tensor([prompt])
        out = self.reference.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            num_beams=params.beams,
            num_return_sequences=params.answers,
            length_penalty=params.length_penalty,
            early_stopping=params.early_stopping,
            repetition_penalty=params.sampling.repetition_penalty,
            max_new_tokens=params.max_tokens,
            do_sample=False,
            eos_token_id=list(ends) or None,
            pad_token_id=VOCABULARY - 1,
            return_dict_in_generate=True,
            output_scores=True,
        )
        answers = []
        for row in out.sequences[:, len(prompt) :].tolist():
            end = next((place + 1 for place, token in enumerate(row) if token in ends), len(row))
            assert set(row[end:]) <= {VOCABULARY - 1}
            answers.append(row[:end])
        return list(zip(answers, out.sequences_scores.tolist(), strict=True))

    def found(
        self, prompt: list[int], params: GenerationParams, ends: tuple[int, ...], capacity: int = 200
    ) -> tuple[Answer, ...]:
        finished = self.finished(prompt, params, ends, capacity)
        assert len(finished.answers) == params.answers
        return finished.answers

    def finished(
        self, prompt: list[int], params: GenerationParams, ends: tuple[int, ...], capacity: int = 200
    ) -> Finished:
        return self.search(Session(self.ours.model, capacity, 5), prompt, params, ends)

    def search(
        self, session: Session, prompt: list[int], params: GenerationParams, ends: tuple[int, ...]
    ) -> Finished:
        request = Request(
            prompt=prompt,
            params=params,
            eos_ids=frozenset(ends),
            new_text=GlyphStream,
            hits=self.ours.counters.snapshot,
            cancelled=lambda: False,
            started=0.0,
        )
        *_, last = generate_beams(session, request)
        assert isinstance(last, Finished)
        return last


def pair_of(path: Path) -> Iterator[Pair]:
    isa = min(max(available_isas()), Isa.AVX2)  # whose activations are float32
    with load_model(path, LoadOptions(device="cpu", threads=2), isa=isa) as loaded:
        reference = MixtralForCausalLM.from_pretrained(
            path, dtype=torch.float32, experts_implementation="eager"
        )
        yield Pair(loaded, reference.eval())


@pytest.fixture(scope="module", params=[0, 1, 2])
def pair(make_model: Any, request: pytest.FixtureRequest) -> Iterator[Pair]:
    window = 6 if request.param == 2 else None
    yield from pair_of(make_model(seed=20 + request.param, sliding_window=window).path)


def check(pair: Pair, prompt: list[int], params: GenerationParams, ends: tuple[int, ...]) -> None:
    expected = pair.expected(prompt, params, ends)
    found = pair.found(prompt, params, ends)
    for answer, (tokens, score) in zip(found, expected, strict=True):
        ended = tokens[-1] in ends
        assert tokens_in(answer.text) == (tokens[:-1] if ended else tokens)
        assert answer.tokens == len(tokens)
        assert answer.score == pytest.approx(score, abs=2e-4, rel=1e-5)
        assert answer.reason is (FinishReason.EOS if ended else FinishReason.LENGTH)


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("beams", [2, 3, 8])
def test_answers_that_end_midway(pair: Pair, beams: int, length_penalty: float, early: bool) -> None:
    params = GenerationParams(
        max_tokens=16,
        beams=beams,
        length_penalty=length_penalty,
        early_stopping=early,
        answers=beams,
    )
    for prompt in PROMPTS:
        check(pair, prompt, params, (7, 23, 48))


@pytest.mark.parametrize("beams", [2, 5, 16])
@pytest.mark.parametrize("max_tokens", [1, 2, 25])
def test_answers_that_only_the_limit_ends(pair: Pair, beams: int, max_tokens: int) -> None:
    params = GenerationParams(max_tokens=max_tokens, beams=beams, answers=max(1, beams // 2))
    for prompt in PROMPTS:
        check(pair, prompt, params, ())


@pytest.mark.parametrize("ends", [(30,), tuple(range(0, 40, 2))])
def test_one_end_token_and_very_many(pair: Pair, ends: tuple[int, ...]) -> None:
    params = GenerationParams(max_tokens=30, beams=3, answers=3)
    for prompt in PROMPTS:
        check(pair, prompt, params, ends)


def test_the_repetition_penalty(pair: Pair) -> None:
    sampling = SamplingParams(repetition_penalty=1.7)
    params = GenerationParams(sampling, max_tokens=20, beams=4, answers=4)
    for prompt in PROMPTS:
        check(pair, prompt, params, (7, 23))


def test_an_expert_runs_once_for_all_beams(pair: Pair) -> None:
    """In one step of many beams, a layer's executions are at most its experts; beam by beam they are more."""
    config, counters = pair.ours.model.config, pair.ours.counters
    beams, steps = 8, 10
    counters.reset()
    params = GenerationParams(max_tokens=steps + 1, beams=beams)
    finished = pair.finished(PROMPTS[1], params, ())
    counts = counters.snapshot().counts
    assert counts.max() <= steps
    decode = counts[Phase.DECODE].sum((1, 2))  # per layer
    assert (decode <= steps * config.num_experts).all()
    assert (decode < steps * beams * config.top_k).all()
    assert finished.stats.hits.counts.sum() == counts.sum()


@pytest.mark.parametrize("beams", [2, 6])
def test_a_full_context_ends_with_the_best_so_far(pair: Pair, beams: int) -> None:
    prompt = PROMPTS[1]
    params = GenerationParams(max_tokens=100, beams=beams, answers=beams)
    finished = pair.finished(prompt, params, (), capacity=len(prompt) + 2 * beams)
    assert finished.reason is FinishReason.CONTEXT_FULL
    assert "new chat" in finished.message
    reached = finished.answers[0].tokens
    assert reached >= 3  # the first token comes from the prompt, and two steps have room for all beams
    expected = pair.expected(prompt, GenerationParams(max_tokens=reached, beams=beams, answers=beams), ())
    assert [tokens_in(answer.text) for answer in finished.answers] == [tokens for tokens, _ in expected]


@pytest.mark.parametrize("ends", [(), (7, 23, 48), tuple(range(0, 60, 5))])
def test_what_stays_in_the_cache_is_the_winners(pair: Pair, ends: tuple[int, ...]) -> None:
    """Also where the winner ended long before the search, and no beam has all of it any more."""
    params = GenerationParams(max_tokens=20, beams=3, length_penalty=0.0)
    for prompt in PROMPTS:
        session, fresh = Session(pair.ours.model, 200, 5), Session(pair.ours.model, 200, 5)
        winner = pair.search(session, prompt, params, ends).answers[0]
        longer = [*prompt, *tokens_in(winner.text), 3, 11]
        assert session.used >= len(prompt)
        assert session.begin(longer) == session.used
        fresh.begin(longer)
        *_, found = session.read(longer)
        *_, expected = fresh.read(longer)
        assert found == pytest.approx(expected, abs=1e-3)
