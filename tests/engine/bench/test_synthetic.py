"""Models of random weights: the right sizes, sound numbers, memory of each expert's own, and cancelling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from engine.bench.errors import BenchError
from engine.bench.presets import PRESETS, preset_info
from engine.bench.random_block import SPREAD
from engine.bench.random_tensors import RandomTensors
from engine.bench.synthetic import make_model
from engine.checkpoint.tensors import load_tensor
from engine.errors import Cancelled
from engine.experts.bank import all_experts
from engine.models import tensors
from engine.options import LoadOptions
from engine.placement import place_uniform
from engine.progress import CancelToken, Progress
from kernels.unpack import unpack_expert

CPU = torch.device("cpu")
OPTIONS = LoadOptions(device="cpu", threads=2)


def test_presets_have_the_sizes_of_the_real_models() -> None:
    mixtral = preset_info("mixtral-8x7b")
    assert mixtral.config.num_layers == 32
    assert mixtral.expert_bytes == 352321536  # 3 × 4096 × 14336 in bf16
    assert 93e9 < mixtral.total_bytes < 94e9
    fewer = preset_info("mixtral-8x7b", 4)
    assert fewer.config.num_layers == 4
    assert fewer.name != mixtral.name
    assert fewer.total_bytes < mixtral.total_bytes / 7


@pytest.mark.parametrize(("name", "layers"), [("gpt2", None), ("tiny", 0), ("tiny", 5000)])
def test_other_presets_are_refused(name: str, layers: int | None) -> None:
    with pytest.raises(BenchError):
        preset_info(name, layers)


def test_dense_weights_are_drawn_around_zero_and_norms_are_one() -> None:
    config = PRESETS["starter"]
    first, again = RandomTensors(config), RandomTensors(config)
    name = tensors.layer(3, "self_attn.o_proj")
    weight = load_tensor(first, name, (576, 576), torch.bfloat16).float()
    assert abs(float(weight.mean())) < 1e-3
    assert float(weight.square().mean().sqrt()) == pytest.approx(SPREAD, rel=0.3)
    assert (weight == load_tensor(again, name, (576, 576), torch.bfloat16)).all()
    other = load_tensor(first, tensors.layer(4, "self_attn.o_proj"), (576, 576), torch.bfloat16)
    assert (weight != other).float().mean() > 0.9
    assert (load_tensor(first, tensors.FINAL_NORM, (576,), torch.float32) == 1).all()


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
def test_experts_have_weights_of_the_usual_size_and_layers_begin_differently(precision: str) -> None:
    options = LoadOptions(device="cpu", threads=2, precision=precision)
    with make_model(preset_info("tiny"), options) as parts:
        bank = parts.bank
        for item in all_experts(bank.config):
            for matrix in unpack_expert(bank.block(*item), bank.shape):
                assert float(matrix.float().square().mean().sqrt()) == pytest.approx(SPREAD, rel=0.35)
        first = [bank.block(layer, 0) for layer in range(3)]
        assert all(not torch.equal(a, b) for a, b in itertools.pairwise(first))
        starts = {bank.block(*item).data_ptr() for item in all_experts(bank.config)}
        assert len(starts) == 24


@pytest.mark.parametrize("precision", ["bf16", "int4"])
@pytest.mark.parametrize("keep", [True, False])
def test_residents_hold_what_their_blocks_held(precision: str, keep: bool) -> None:
    options = LoadOptions(device="cpu", threads=2, precision=precision)
    placement = place_uniform(3, 8, 7)
    info = preset_info("tiny")
    with (
        make_model(info, options) as whole,
        make_model(info, options, placement, expert_device=CPU, keep_residents=keep) as parts,
    ):
        assert parts.residents is not None
        for item in all_experts(info.config):
            place = parts.residents.place(*item)
            assert (place is not None) == placement.resident[item]
            if place is not None:
                assert torch.equal(parts.residents.block(place), whole.bank.block(*item))
        assert parts.bank.held.all() == keep
        assert (parts.bank.held | placement.resident).all()


def test_activations_stay_finite_through_many_layers() -> None:
    with make_model(preset_info("tiny", 64), OPTIONS) as parts:
        cache = parts.model.new_cache(64)
        logits = parts.model.forward(torch.arange(60), cache, logits="all")
        assert logits is not None
        assert logits.isfinite().all()
        assert 0.01 < float(logits.std()) < 100


def test_filling_reports_every_expert_and_can_be_cancelled() -> None:
    cancel = CancelToken()
    heard: list[Progress] = []

    def progress(step: Progress) -> None:
        heard.append(step)
        if step.what == "Loading experts" and step.done == 5:
            cancel.cancel()

    with pytest.raises(Cancelled):
        make_model(preset_info("tiny"), OPTIONS, progress=progress, cancel=cancel)
    assert {"Loading layers", "Drawing weights"} < {step.what for step in heard}
    assert heard[-1] == Progress("Loading experts", 5, 24, "experts")


def test_the_same_model_comes_again() -> None:
    with make_model(preset_info("tiny"), OPTIONS) as first, make_model(preset_info("tiny"), OPTIONS) as again:
        ids = torch.from_numpy(np.arange(20))
        logits = [parts.model.forward(ids, parts.model.new_cache(32)) for parts in (first, again)]
    assert logits[0] is not None
    torch.testing.assert_close(logits[0], logits[1])
