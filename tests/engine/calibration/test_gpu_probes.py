"""The GPU's probes with the CPU as a second device: what they run, not how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from engine.calibration import gpu_probes
from engine.calibration.gpu_probes import GpuProbes
from engine.calibration.timing import Timing
from engine.experts.slots import GpuExperts
from engine.models.loader import LoadedModel, load_model
from engine.options import LoadOptions
from engine.placement import place_uniform


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(action: Callable[[], object], **_: Any) -> Timing:
        for _ in range(6):
            action()
        return Timing(1e-3, 0.0)

    monkeypatch.setattr(gpu_probes, "measure", measure)


@pytest.fixture(params=[0, 3, 7, 8])
def parts(request: pytest.FixtureRequest, make_model: Callable[..., Any]) -> Iterator[LoadedModel]:
    """A model of 2 × 4 experts with none, some, all but one, or all of them on the second device."""
    loaded = load_model(
        make_model().path,
        LoadOptions(threads=1, device="cpu"),
        place_uniform(2, 4, request.param),
        expert_device=torch.device("cpu"),
    )
    yield loaded
    loaded.close()


@pytest.fixture
def claimed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The slots into which experts are copied."""
    places: list[int] = []
    real = GpuExperts.claim

    def claim(self: GpuExperts, layer: int, expert: int, whole: bool = True) -> int:
        places.append(real(self, layer, expert, whole))
        return places[-1]

    monkeypatch.setattr(GpuExperts, "claim", claim)
    return places


def residents(parts: LoadedModel) -> GpuExperts:
    assert parts.residents is not None
    return parts.residents


def test_every_weight_copy_copies(parts: LoadedModel, claimed: list[int]) -> None:
    count = int(residents(parts).resident.sum())
    GpuProbes(parts).weight_copy()
    assert len(claimed) == 6
    if count < 8:  # into slots, behind the residents
        assert min(claimed) >= count


def test_experts_run_with_the_asked_tokens(parts: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[int, int]] = []
    real = GpuExperts.run

    def run(self: GpuExperts, place: int, x: torch.Tensor) -> torch.Tensor:
        runs.append((place, len(x)))
        return real(self, place, x)

    monkeypatch.setattr(GpuExperts, "run", run)
    GpuProbes(parts).expert(5)
    assert [tokens for _, tokens in runs] == [5] * 6
    if residents(parts).resident.sum() == 3:
        assert len({place for place, _ in runs}) == 3


def test_numbers_are_in_the_models_own_format(parts: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model's are float32 on a GPU, where bf16 is usual; here it is the other way round."""
    formats: set[torch.dtype] = set()

    def run(self: GpuExperts, place: int, x: torch.Tensor) -> torch.Tensor:
        formats.update((self.number_format, x.dtype))
        return x

    monkeypatch.setattr(GpuExperts, "run", run)
    residents(parts).number_format = torch.bfloat16
    GpuProbes(parts).expert(5)
    assert formats == {torch.bfloat16}


def test_the_model_computes_the_same_after_all_probes(parts: LoadedModel) -> None:
    tokens = torch.arange(9)
    before = parts.model.forward(tokens, parts.model.new_cache(9))
    resident = residents(parts).resident.copy()
    probes = GpuProbes(parts)
    probes.weight_copy()
    probes.expert(2)
    probes.activation_copy(3)
    after = parts.model.forward(tokens, parts.model.new_cache(9))
    assert before is not None
    assert after is not None
    torch.testing.assert_close(after, before, rtol=2e-2, atol=2e-2)
    assert (residents(parts).resident == resident).all()
    for layer, expert in np.argwhere(resident):
        place = residents(parts).place(int(layer), int(expert))
        assert place is not None
        assert place < resident.sum()


def test_without_a_second_device_there_is_nothing_to_probe(make_model: Callable[..., Any]) -> None:
    alone = load_model(make_model().path, LoadOptions(threads=1, device="cpu"))
    with pytest.raises(ValueError, match="without a GPU"):
        GpuProbes(alone)
    alone.close()
