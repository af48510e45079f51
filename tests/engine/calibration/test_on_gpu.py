"""The GPU's probes on a real one, and detection against what CUDA itself says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from engine.budget import CUDA_DEVICE_BYTES
from engine.calibration.gpu_probes import GpuProbes
from engine.calibration.probes import TOKEN_COUNTS
from engine.calibration.quick import measure_costs
from engine.calibration.run import MeasurableEngine, calibrate
from engine.calibration.together import TOGETHER_COUNTS
from engine.hardware import detect
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import Placement, place_nothing, place_uniform
from engine.profile import ProbeKind
from engine.units import GIB

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def test_nvml_agrees_with_cuda() -> None:
    hardware = detect()
    assert hardware.has_gpu, hardware.gpu_message
    gpu = hardware.gpu
    assert gpu is not None
    free, total = torch.cuda.mem_get_info()
    assert gpu.name == torch.cuda.get_device_name()
    assert gpu.compute_capability == torch.cuda.get_device_capability()
    assert gpu.vram_total == pytest.approx(total, rel=0.02)
    assert gpu.vram_free == pytest.approx(free, abs=1 * GIB)


def test_what_cuda_takes_by_itself_is_within_the_budgets_item() -> None:
    torch.ones(64, 64, device="cuda") @ torch.ones(64, 64, device="cuda")  # loads cuBLAS
    free, total = torch.cuda.mem_get_info()
    ours = total - free - torch.cuda.memory_reserved()
    print(f"in use beside torch's own: {ours / 2**20:.0f} MiB")
    assert ours < 4 * CUDA_DEVICE_BYTES  # a server's card has a larger context than a desktop's


@pytest.mark.parametrize("slots", [0, 3, 8])
def test_every_probe_takes_a_time_and_residents_stay(make_model: Callable[..., Any], slots: int) -> None:
    model = make_model(vocab_size=256)
    options = LoadOptions(threads=1, device="cuda")
    placement: Placement = place_uniform(2, 4, slots) if slots else place_nothing(2, 4)
    parts = load_model(model.path, options, placement)
    try:
        before = parts.model.forward(torch.arange(9), parts.model.new_cache(9))
        gpu = GpuProbes(parts)
        assert all(gpu.expert(tokens).seconds > 0 for tokens in TOKEN_COUNTS)
        whole = gpu.weight_copy().seconds
        assert whole > 0
        assert 0 <= gpu.copy_start().seconds < 10 * whole
        count, seconds = gpu.copies(lambda: False)
        assert count == 1
        assert seconds > 0
        assert gpu.activation_copy(64).seconds >= 0
        assert parts.residents is not None
        assert (parts.residents.resident == placement.resident).all()
        for layer, expert in np.argwhere(placement.resident):
            assert parts.residents.place(int(layer), int(expert)) is not None
        after = parts.model.forward(torch.arange(9), parts.model.new_cache(9))
        assert before is not None
        assert after is not None
        # The slots' experts now run on the GPU: other roundings, but not other weights.
        assert (after - before).norm() < 0.3 * before.norm()
    finally:
        parts.close()


@pytest.mark.parametrize("slots", [0, 3, 8])
def test_costs_for_benchmarks_are_complete(make_model: Callable[..., Any], slots: int) -> None:
    """And a model that decides by them computes what it computed before."""
    model = make_model(intermediate_size=320)
    placement = place_uniform(2, 4, slots) if slots else place_nothing(2, 4)
    with load_model(model.path, LoadOptions(threads=2, device="cuda"), placement) as parts:
        ids = torch.arange(9)
        before = parts.model.forward(ids, parts.model.new_cache(9))
        costs = measure_costs(parts)
        assert costs.has_gpu
        assert costs.together is not None
        assert all(0.5 < slowdown < 50 for slowdown in costs.together.slowdowns)
        assert all(seconds > 0 for seconds in costs.together.copies)
        parts.model.executor.costs = costs
        after = parts.model.forward(ids, parts.model.new_cache(9))
        assert before is not None
        assert after is not None
        assert (after - before).norm() < 0.3 * before.norm()


def test_a_calibration_with_a_gpu_has_all_its_costs(make_model: Callable[..., Any], tmp_path: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    model = make_model(vocab_size=256)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(model.path / "tokenizer.json"))
    options = LoadOptions(threads=1, device="cuda")
    parts = load_model(model.path, options, place_uniform(2, 4, 3))
    engine = SimpleNamespace(
        info=parts.info,
        hardware=detect(),
        options=options,
        exclusive=lambda: nullcontext(parts),
        use_profile=lambda _: None,
    )
    profile = calibrate(cast(MeasurableEngine, engine), folder=tmp_path)
    parts.close()
    assert profile.latency.has_gpu
    assert profile.latency.together is not None
    assert profile.latency.together.tokens == TOGETHER_COUNTS
    assert profile.expert_slots == 3
    assert {probe.kind for probe in profile.probes} == set(ProbeKind)
    assert 0 < profile.predicted_decode < 1
    assert "none used" not in profile.hardware["graphics card"]
