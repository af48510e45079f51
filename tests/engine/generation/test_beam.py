"""The search itself against transformers on models that are tables of logits, exactly, ties included."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from engine.generation.beam import BeamSearch, common_length
from engine.params import GenerationParams, SamplingParams

PAD = 0


class TableConfig(PretrainedConfig):
    model_type = "table"
    vocab_size = 0


class TableModel(PreTrainedModel, GenerationMixin):
    """The logits depend on the last token only: `table` [vocabulary, vocabulary]."""

    config_class = TableConfig

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__(TableConfig(vocab_size=len(table), use_cache=False))
        self.table = torch.nn.Parameter(table)

    def prepare_inputs_for_generation(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        return {"input_ids": input_ids}

    def forward(self, input_ids: torch.Tensor, **_: Any) -> CausalLMOutput:
        return CausalLMOutput(logits=self.table[input_ids])


def reference(
    table: torch.Tensor, prompt: list[int], params: GenerationParams, ends: list[int]
) -> list[tuple[list[int], float]]:
    out = TableModel(table).generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        num_beams=params.beams,
        num_return_sequences=params.beams,
        length_penalty=params.length_penalty,
        early_stopping=params.early_stopping,
        repetition_penalty=params.sampling.repetition_penalty,
        max_new_tokens=params.max_tokens,
        do_sample=False,
        use_cache=False,
        eos_token_id=ends or None,
        pad_token_id=PAD,
        return_dict_in_generate=True,
        output_scores=True,
    )
    answers = []
    for row in out.sequences[:, len(prompt) :].tolist():
        end = next((place + 1 for place, token in enumerate(row) if token in ends), len(row))
        answers.append(row[:end])
    return list(zip(answers, out.sequences_scores.tolist(), strict=True))


def search(
    table: torch.Tensor, prompt: list[int], params: GenerationParams, ends: list[int]
) -> list[tuple[list[int], float]]:
    beams = BeamSearch(params, prompt, len(ends))
    newest = [prompt[-1]] * params.beams
    while not beams.done:
        candidates = beams.propose(table[newest])
        last = beams.length + 1 >= params.max_tokens
        before = beams.tokens
        chosen = beams.accept(candidates, [last or token in ends for token in candidates.tokens])
        for tokens, index in zip(beams.tokens, chosen, strict=True):
            assert tokens == [*before[candidates.parents[index]], candidates.tokens[index]]
        newest = [tokens[-1] for tokens in beams.tokens]
    return [(list(answer.tokens), answer.score) for answer in beams.finished]


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    vocabulary=st.integers(9, 30),
    levels=st.sampled_from([2, 3, 8, 1000]),  # few levels: ties everywhere
    beams=st.integers(2, 5),
    length_penalty=st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0, 3.0]),
    early_stopping=st.booleans(),
    max_tokens=st.integers(1, 12),
    ends=st.sets(st.integers(1, 8), max_size=4),
    penalty=st.sampled_from([1.0, 1.0, 0.7, 1.5]),
)
def test_answers_and_scores_are_those_of_transformers(
    seed: int,
    vocabulary: int,
    levels: int,
    beams: int,
    length_penalty: float,
    early_stopping: bool,
    max_tokens: int,
    ends: set[int],
    penalty: float,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    table = torch.randint(0, levels, (vocabulary, vocabulary), generator=generator) * (4.0 / levels)
    params = GenerationParams(
        SamplingParams(repetition_penalty=penalty),
        max_tokens=max_tokens,
        beams=beams,
        length_penalty=length_penalty,
        early_stopping=early_stopping,
    )
    prompt = torch.randint(0, vocabulary, (3,), generator=generator).tolist()
    assert search(table, prompt, params, sorted(ends)) == reference(table, prompt, params, sorted(ends))


def test_what_is_live_counts_when_the_search_is_closed() -> None:
    table = torch.log(torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]))
    beams = BeamSearch(GenerationParams(beams=2, length_penalty=1.0), [0], 0)
    beams.accept(beams.propose(table[[0, 0]]), [False] * 4)
    beams.accept(beams.propose(table[[0, 1]]), [False] * 4)
    assert beams.finished == []
    beams.close()
    assert [answer.tokens for answer in beams.finished] == [(0, 0), (1, 1)]
    scores = [answer.score for answer in beams.finished]
    assert scores == pytest.approx(torch.tensor([0.25, 0.18]).log().div(2).tolist())


@given(st.lists(st.lists(st.integers(0, 1), max_size=6), min_size=1, max_size=4), st.data())
def test_the_common_length(answers: list[list[int]], data: st.DataObject) -> None:
    expected = max(
        n
        for n in range(7)
        if len({tuple(answer[:n]) for answer in answers}) == 1 and n <= min(map(len, answers))
    )
    assert common_length(answers, data.draw(st.integers(0, expected))) == expected
