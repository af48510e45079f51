"""The starter model is the dense model: same logits, whole pairs, and experts of uneven popularity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
import torch
from safetensors import safe_open
from transformers import AutoTokenizer

from engine.starter.recipe import calibration_texts

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, MixtralForCausalLM

pytestmark = [pytest.mark.starter, pytest.mark.slow]

PAIRS = 4


def held_out() -> list[str]:
    return Path(__file__).with_name("heldout.txt").read_text("utf-8").strip().split("\n=====\n")


class Run(NamedTuple):
    """What transformers' Mixtral says to one text."""

    ids: torch.Tensor  # [1, tokens]
    hidden: torch.Tensor  # [tokens, hidden], what the output matrix is applied to
    router_logits: tuple[torch.Tensor, ...]  # per layer [tokens, experts]


@pytest.fixture(scope="module")
def runs(starter_dir: Path, mixtral: MixtralForCausalLM) -> dict[str, list[Run]]:
    """The calibration text and the held-out text, piece by piece, through Mixtral in float32."""
    tokenizer = AutoTokenizer.from_pretrained(starter_dir)

    @torch.inference_mode()
    def run(text: str) -> Run:
        ids = tokenizer(text, return_tensors="pt", add_special_tokens=False).input_ids
        output = mixtral.model(ids, output_router_logits=True, use_cache=False)
        return Run(ids, output.last_hidden_state[0], output.router_logits)

    texts = {"calibration": calibration_texts(), "held out": held_out()}
    return {name: [run(text) for text in pieces] for name, pieces in texts.items()}


@torch.inference_mode()
def test_logits_equal_the_dense_models(
    runs: dict[str, list[Run]], mixtral: MixtralForCausalLM, dense_model: LlamaForCausalLM
) -> None:
    """On a mixed text of prose, code and chat: relative error per row ≤ 1e-4, the same token everywhere."""
    for run in runs["held out"]:
        expected = dense_model(run.ids, use_cache=False).logits[0]
        found = mixtral.lm_head(run.hidden)
        errors = (found - expected).norm(dim=-1) / expected.norm(dim=-1)
        assert errors.max() <= 1e-4
        assert torch.equal(found.argmax(-1), expected.argmax(-1))


@pytest.mark.parametrize("text", ["calibration", "held out"])
def test_whole_pairs_of_uneven_popularity(
    runs: dict[str, list[Run]], mixtral: MixtralForCausalLM, text: str
) -> None:
    """Router logits in float32: every selection is a pair; summed over layers no pair has > 50 % or < 8 %."""
    config = mixtral.config
    counts = torch.zeros(config.num_hidden_layers, PAIRS, dtype=torch.int64)
    for run in runs[text]:
        for layer, logits in enumerate(run.router_logits):
            assert logits.dtype == torch.float32
            chosen = logits.topk(config.num_experts_per_tok).indices.sort(-1).values
            assert torch.equal(chosen[:, 0] % 2, torch.zeros(len(chosen), dtype=torch.int64))
            assert torch.equal(chosen[:, 1], chosen[:, 0] + 1)
            counts[layer] += torch.bincount(chosen[:, 0] // 2, minlength=PAIRS)
    shares = counts.sum(0) / counts.sum()
    assert shares.max() <= 0.50
    assert shares.min() >= 0.08
    assert shares.max() >= 1.5 * shares.min()
    # Routing depends on the token: in no layer does one pair take all.
    assert (counts.max(1).values < 0.9 * counts.sum(1)).all()


def test_the_noisy_variant_differs_by_two_percent_in_experts_alone(
    starter_dir: Path, noisy_starter_dir: Path
) -> None:
    for shard in sorted(path.name for path in starter_dir.glob("*.safetensors")):
        with (
            safe_open(starter_dir / shard, "pt") as clean,
            safe_open(noisy_starter_dir / shard, "pt") as noisy,
        ):
            assert set(clean.keys()) == set(noisy.keys())
            for name in clean.keys():  # noqa: SIM118 - safe_open is not iterable
                exact, other = clean.get_tensor(name).float(), noisy.get_tensor(name).float()
                if ".experts." in name:
                    assert 0.018 < float((other - exact).norm() / exact.norm()) < 0.022
                else:
                    assert torch.equal(exact, other)


def test_copies_of_a_half_are_equal_and_their_noise_is_not(
    starter_dir: Path, noisy_starter_dir: Path
) -> None:
    prefix = "model.layers.7.block_sparse_moe"
    for folder, equal in ((starter_dir, True), (noisy_starter_dir, False)):
        shard = sorted(folder.glob("*.safetensors"))[7 // 5]
        with safe_open(shard, "pt") as file:
            for matrix in ("w1", "w2", "w3"):
                first, copy, half = (
                    file.get_tensor(f"{prefix}.experts.{expert}.{matrix}.weight") for expert in (0, 6, 1)
                )
                assert torch.equal(first, copy) is equal
                assert not torch.equal(first, half)
            rows = file.get_tensor(f"{prefix}.gate.weight")
            assert torch.equal(rows[0::2], rows[1::2])
            assert len(rows[0::2].unique(dim=0)) == PAIRS
