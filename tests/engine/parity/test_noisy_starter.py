"""The starter with 2 % noise on its experts against transformers, in float32.

Its plain experts come in equal pairs, so that running the wrong pair changes logits by 4e-5 only; with the
noise the same fault changes them by about 3.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import MixtralForCausalLM

from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import place_uniform
from kernels.cpu import Isa
from kernels.isa import available_isas

pytestmark = [pytest.mark.starter, pytest.mark.slow]
TEXT = (
    "The lighthouse keeper counted the ships: one, two, three. def count(ships): return len(ships)\n"
    "<|im_start|>user\nHow many were there?<|im_end|>\n<|im_start|>assistant\nThere were 3 ships."
)


@pytest.fixture(scope="module")
def ids(noisy_starter_dir: Path) -> torch.Tensor:
    tokenizer = Tokenizer.from_file(str(noisy_starter_dir / "tokenizer.json"))
    return torch.tensor(tokenizer.encode(TEXT, add_special_tokens=False).ids)


@pytest.fixture(scope="module")
def reference(noisy_starter_dir: Path, ids: torch.Tensor) -> torch.Tensor:
    model = MixtralForCausalLM.from_pretrained(
        noisy_starter_dir, dtype=torch.float32, experts_implementation="eager"
    ).eval()
    with torch.inference_mode():
        return model(ids[None], use_cache=False).logits[0]


@pytest.mark.parametrize("policy", ["paper", "cpu", "stream"])
def test_every_token_reaches_its_own_experts(
    noisy_starter_dir: Path, ids: torch.Tensor, reference: torch.Tensor, policy: str
) -> None:
    isa = Isa.AVX2 if Isa.AVX2 in available_isas() else Isa.PORTABLE
    half = place_uniform(30, 8, 120)
    second = torch.device("cpu")
    options = LoadOptions(policy=policy, threads=2, device="cpu")
    with load_model(noisy_starter_dir, options, half, isa=isa, expert_device=second) as loaded:
        cache = loaded.model.new_cache(len(ids))
        prompt, answer = ids[:-8], ids[-8:]
        rows = [loaded.model.forward(prompt, cache, logits="all")]
        rows += [loaded.model.forward(token[None], cache) for token in answer]
    logits = torch.cat([row for row in rows if row is not None])
    errors = (logits - reference).norm(dim=1) / reference.norm(dim=1)
    assert len(logits) == len(ids)
    assert errors.max() <= 1e-4
