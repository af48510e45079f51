"""The starter model's answers are those of transformers in float32, token for token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, MixtralForCausalLM, PreTrainedTokenizerFast

from engine.events import Finished, FinishReason, TextDelta
from engine.generation.sampling import Sampler
from engine.options import LoadOptions
from engine.params import GenerationParams, Message, SamplingParams
from engine.runtime import Engine
from kernels.isa import Isa, available_isas

pytestmark = [pytest.mark.starter, pytest.mark.slow]

CAPITAL = "What is the capital of France?"
LONG = (
    "Write a short story about a fox who learns to read.",
    "Explain how rain forms, step by step.",
    "Write a Python function that returns the first n prime numbers, and explain it.",
    "What should I see in Rome in three days?",
    "List ten uses of a paper clip.",
)
TOKENS = 72


@pytest.fixture(scope="module")
def engine(starter_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The starter model on kernels whose activations are float32."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIDDLER_MAX_ISA", min(max(available_isas()), Isa.AVX2).value)
        patch.setenv("FIDDLER_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        with Engine.load(starter_dir, LoadOptions(device="cpu")) as loaded:
            yield loaded


@pytest.fixture(scope="module")
def reference(starter_dir: Path) -> MixtralForCausalLM:
    """The same folder in transformers, float32."""
    return MixtralForCausalLM.from_pretrained(
        starter_dir, dtype=torch.float32, experts_implementation="eager"
    )


@pytest.fixture(scope="module")
def tokenizer(starter_dir: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(starter_dir)


def prompt_ids(tokenizer: PreTrainedTokenizerFast, prompt: str) -> list[int]:
    turn = [{"role": "user", "content": prompt}]
    return tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_dict=False)


def answer(engine: Engine, prompt: str) -> tuple[str, Finished]:
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=TOKENS)
    events = list(engine.generate([Message("user", prompt)], params))
    assert isinstance(events[-1], Finished)
    return "".join(event.text for event in events if isinstance(event, TextDelta)), events[-1]


def test_the_capital_of_france_is_paris_as_transformers_generates_it(
    engine: Engine, reference: MixtralForCausalLM, tokenizer: PreTrainedTokenizerFast
) -> None:
    text, finished = answer(engine, CAPITAL)
    ids = torch.tensor([prompt_ids(tokenizer, CAPITAL)])
    out = reference.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, do_sample=False)
    expected = out[0, ids.shape[1] :].tolist()
    assert "Paris" in text
    assert finished.reason is FinishReason.EOS
    assert text == tokenizer.decode(expected, skip_special_tokens=True)
    assert expected[-1] in reference.generation_config.eos_token_id
    assert finished.stats.generated_tokens == len(expected) - 1


@pytest.mark.parametrize("prompt", LONG)
def test_long_answers_are_greedy_in_transformers_too(
    engine: Engine, reference: MixtralForCausalLM, tokenizer: PreTrainedTokenizerFast, prompt: str
) -> None:
    """One full forward over prompt and answer: if each token of the answer is the most likely one after what
    comes before it, then greedy generation yields this very answer (by induction from the first token).
    """
    tokens: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        draw = Sampler.draw
        patch.setattr(Sampler, "draw", lambda self, logits: tokens.append(draw(self, logits)) or tokens[-1])
        text, finished = answer(engine, prompt)
    assert len(tokens) > 64
    assert finished.stats.generated_tokens > 64
    assert text == tokenizer.decode(tokens, skip_special_tokens=True)
    ids = prompt_ids(tokenizer, prompt)
    with torch.inference_mode():
        logits = reference(torch.tensor([ids + tokens]), use_cache=False).logits[0]
    assert logits[len(ids) - 1 : -1].argmax(-1).tolist() == tokens
