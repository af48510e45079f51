"""Experts in every precision: what the bank holds, what a second device computes with, and whole models.

The reference for a quantised model is transformers with the weights that its experts stand for.
"""

import numpy as np
import pytest
import torch
from transformers import MixtralConfig as ReferenceConfig
from transformers import MixtralForCausalLM

from engine.checkpoint.reader import Checkpoint
from engine.experts.bank import ExpertBank, all_experts
from engine.experts.slots import GpuExperts
from engine.experts.stream import DirectStream
from engine.models.loader import load_model
from engine.models.tensors import expert as expert_name
from engine.options import LoadOptions
from engine.placement import Placement
from engine.stats import HitCounters
from kernels.cpu import unpack_expert
from kernels.formats import WeightFormat
from tests.kernels.experts import unpack_quantised

QUANTISED = [WeightFormat.INT8, WeightFormat.INT4]
# Root mean square error of normal weights: 8 bits of the largest of 32, and 4 bits by least squares.
ERRORS = {WeightFormat.INT8: 0.008, WeightFormat.INT4: 0.09}
NAMES = ("w1", "w3", "w2")


@pytest.fixture(scope="module")
def model(make_model):
    """Sizes that are no multiples of a group, and more than one block of 256 along the reduction."""
    return make_model(seed=3, hidden_size=296, num_attention_heads=4, intermediate_size=300)


@pytest.fixture(scope="module")
def banks(model):
    made = {}
    with Checkpoint(model.path) as checkpoint:
        for weight_format in WeightFormat:
            made[weight_format] = ExpertBank(model.config, weight_format)
            made[weight_format].fill(checkpoint, threads=2)
    return made


def held(bank, layer, expert):
    """What the packed weights stand for, float32 by name."""
    matrices = unpack_quantised(bank.block(layer, expert), bank.shape)
    return {name: matrix.dequantise() for name, matrix in zip(NAMES, matrices, strict=True)}


@pytest.mark.parametrize("weight_format", QUANTISED)
def test_the_bank_holds_every_weight_as_well_as_the_precision_can(model, banks, weight_format):
    bank = banks[weight_format]
    assert bank.shape.format is weight_format
    for layer, expert in all_experts(model.config):
        for name, values in held(bank, layer, expert).items():
            plain = model.weights[expert_name(layer, expert, name)].float()
            assert values.shape == plain.shape
            error = float((values - plain).norm() / plain.norm())
            assert 0 < error < ERRORS[weight_format]


def test_fewer_bits_take_less_memory(banks):
    sizes = [banks[weight_format].arena.numel() for weight_format in WeightFormat]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.parametrize("weight_format", WeightFormat)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_second_device_computes_with_plain_matrices(model, banks, weight_format, streamed):
    bank = banks[weight_format]
    resident = np.zeros((2, 4), dtype=bool)
    resident[1, 2] = not streamed
    gpu = GpuExperts(model.config, torch.device("cpu"), resident, packed_format=weight_format)
    counters = HitCounters(2, 4)
    if streamed:
        place = DirectStream(bank, gpu, counters).fetch(1, 2)
    else:
        place = gpu.place(1, 2)
        gpu.store(place, bank.block(1, 2))
    assert counters.streamed_bytes == (bank.shape.nbytes if streamed else 0)
    x = torch.randn(3, model.config.hidden_size)
    w1, w3, w2 = (matrix.double() for matrix in unpack_expert(bank.block(1, 2), bank.shape))
    gate = x.double() @ w1.T
    expected = (gate * gate.sigmoid() * (x.double() @ w3.T)) @ w2.T
    torch.testing.assert_close(gpu.run(place, x).double(), expected, atol=1e-4, rtol=1e-4)


@pytest.fixture(scope="module")
def reference(model, banks):
    """`reference(format, ids)`: transformers' logits in float32 with the weights that the bank stands for."""

    def logits(weight_format, ids):
        config = ReferenceConfig.from_pretrained(model.path)
        network = MixtralForCausalLM.from_pretrained(
            model.path, config=config, dtype=torch.float32, experts_implementation="eager"
        ).eval()
        with torch.inference_mode():
            for layer, block in enumerate(network.model.layers):
                for expert in range(model.config.num_experts):
                    weights = held(banks[weight_format], layer, expert)
                    gate_up = torch.cat([weights["w1"], weights["w3"]])
                    block.mlp.experts.gate_up_proj[expert] = gate_up
                    block.mlp.experts.down_proj[expert] = weights["w2"]
            return network(ids[None], use_cache=False).logits[0]

    return logits


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("weight_format", QUANTISED)
@pytest.mark.parametrize("policy", ["stream", "cpu"])
@pytest.mark.parametrize("placed", [0.0, 0.5, 1.0])
def test_a_whole_model_on_a_gpu_answers_as_its_weights_say(model, reference, weight_format, policy, placed):
    ids = torch.randint(0, 61, (24,), generator=torch.Generator().manual_seed(1))
    expected = reference(weight_format, ids)
    options = LoadOptions(threads=2, device="cuda", policy=policy, precision=weight_format)
    resident = np.random.default_rng(0).random((2, 4)) < placed
    with load_model(model.path, options, Placement(resident)) as loaded:
        cache = loaded.model.new_cache(len(ids))
        parts = [loaded.model.forward(ids[:16], cache, logits="all")]
        parts += [loaded.model.forward(token[None], cache) for token in ids[16:]]
        ours = torch.cat(parts)
        if policy == "stream" and placed == 0:
            assert loaded.counters.streamed_bytes % loaded.bank.shape.nbytes == 0
            assert loaded.counters.streamed_bytes > 0
    errors = (ours - expected).norm(dim=1) / expected.norm(dim=1)
    assert float(errors.max()) < 0.03


@pytest.mark.parametrize("weight_format", QUANTISED)
@pytest.mark.parametrize("placed", [None, 0.0, 0.5, 1.0])
def test_a_whole_model_answers_as_its_weights_say(model, reference, weight_format, placed):
    ids = torch.randint(0, 61, (24,), generator=torch.Generator().manual_seed(1))
    expected = reference(weight_format, ids)
    options = LoadOptions(threads=2, device="cpu", policy="stream", precision=weight_format)
    resident = np.random.default_rng(0).random((2, 4)) < (placed or 0.0)
    second = None if placed is None else torch.device("cpu")
    with load_model(model.path, options, Placement(resident), expert_device=second) as loaded:
        assert loaded.bank.shape.format is weight_format
        cache = loaded.model.new_cache(len(ids))
        parts = [loaded.model.forward(ids[:16], cache, logits="all")]
        parts += [loaded.model.forward(token[None], cache) for token in ids[16:]]
        ours = torch.cat(parts)
    errors = (ours - expected).norm(dim=1) / expected.norm(dim=1)
    # Activations of 8 or 16 bits on the CPU, weights rounded to bf16 on the second device.
    assert float(errors.max()) < 0.03
