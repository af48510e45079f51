from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hardware.facts import GpuState
from engine.hardware.gpu import detect_gpus, select_visible
from engine.hardware.torch_build import TorchBuild
from engine.units import GIB

CUDA_TORCH = TorchBuild("2.13.0", True, "13.0")
CPU_TORCH = TorchBuild("2.13.0+cpu", False)


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


@dataclass
class Card:
    name: str = "Quadro RTX 6000"
    uuid: str = "GPU-11111111-aaaa"
    total: int = 24 * GIB
    free: int = 23 * GIB
    capability: tuple[int, int] = (8, 9)
    generation: int = 1  # the link rests at generation 1 while idle
    generation_max: int = 4
    width: int = 16
    fails: dict[str, int] = field(default_factory=dict)  # function name: error code


@dataclass
class FakeNvml:
    """The calls of nvidia-ml-py that detection uses; `fails` maps a function's name to an error code."""

    cards: list[Card] = field(default_factory=lambda: [Card()])
    fails: dict[str, int] = field(default_factory=dict)
    cuda: int = 13000
    shut_down: int = 0
    NVML_ERROR_LIBRARY_NOT_FOUND: int = 12
    NVML_ERROR_DRIVER_NOT_LOADED: int = 9
    NVMLError: type[NVMLError] = NVMLError

    def _try(self, name: str, fails: dict[str, int]) -> None:
        if name in fails:
            raise NVMLError(fails[name])

    def nvmlInit(self) -> None:
        self._try("nvmlInit", self.fails)

    def nvmlShutdown(self) -> None:
        self.shut_down += 1
        self._try("nvmlShutdown", self.fails)

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        self._try("nvmlSystemGetCudaDriverVersion_v2", self.fails)
        return self.cuda

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.95.05"

    def nvmlDeviceGetCount(self) -> int:
        self._try("nvmlDeviceGetCount", self.fails)
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self.cards[index]

    def nvmlDeviceGetMemoryInfo(self, card: Card) -> Any:
        self._try("nvmlDeviceGetMemoryInfo", card.fails)
        return SimpleNamespace(total=card.total, free=card.free, used=card.total - card.free)

    def nvmlDeviceGetName(self, card: Card) -> str:
        return card.name

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> list[int]:
        return list(card.capability)

    def nvmlDeviceGetCurrPcieLinkGeneration(self, card: Card) -> int:
        return card.generation

    def nvmlDeviceGetCurrPcieLinkWidth(self, card: Card) -> int:
        return card.width

    def nvmlDeviceGetMaxPcieLinkGeneration(self, card: Card) -> int:
        self._try("nvmlDeviceGetMaxPcieLinkGeneration", card.fails)
        return card.generation_max

    def nvmlDeviceGetMaxPcieLinkWidth(self, card: Card) -> int:
        return card.width


def test_a_good_gpu_is_ready_with_all_its_facts() -> None:
    nvml = FakeNvml()
    report = detect_gpus(CUDA_TORCH, nvml, {})
    assert report.state is GpuState.READY
    assert report.message == ""
    (gpu,) = report.gpus
    assert (gpu.vram_total, gpu.vram_free) == (24 * GIB, 23 * GIB)
    assert (gpu.pcie_generation, gpu.pcie_generation_max, gpu.pcie_width) == (1, 4, 16)
    assert gpu.pcie_bandwidth == pytest.approx(31.5e9, rel=0.01)
    assert gpu.driver == "580.95.05"
    assert gpu.compute_capability == (8, 9)
    assert nvml.shut_down == 1


@pytest.mark.parametrize(
    ("nvml", "torch", "state", "said"),
    [
        (FakeNvml(fails={"nvmlInit": 12}), CUDA_TORCH, GpuState.NO_DRIVER, "No NVIDIA driver"),
        (FakeNvml(fails={"nvmlInit": 9}), CUDA_TORCH, GpuState.NO_DRIVER, "No NVIDIA driver"),
        (FakeNvml(fails={"nvmlInit": 18}), CUDA_TORCH, GpuState.BROKEN, "restart"),
        (FakeNvml(fails={"nvmlDeviceGetCount": 999}), CUDA_TORCH, GpuState.BROKEN, "does not answer"),
        (
            FakeNvml([Card(fails={"nvmlDeviceGetMemoryInfo": 15})]),
            CUDA_TORCH,
            GpuState.BROKEN,
            "NVML error 15",
        ),
        (FakeNvml([]), CUDA_TORCH, GpuState.NO_GPU, "finds no graphics card"),
        (FakeNvml(), CPU_TORCH, GpuState.TORCH_WITHOUT_CUDA, "2.13.0+cpu is built without CUDA"),
        (FakeNvml(), None, GpuState.TORCH_WITHOUT_CUDA, "not installed"),
        (FakeNvml(cuda=12080), CUDA_TORCH, GpuState.DRIVER_TOO_OLD, "supports CUDA 12.8"),
        (FakeNvml([Card(capability=(6, 1))]), CUDA_TORCH, GpuState.TOO_OLD, "6.1"),
    ],
)
def test_every_way_of_not_having_one_is_a_state_with_a_sentence(
    nvml: FakeNvml, torch: TorchBuild | None, state: GpuState, said: str
) -> None:
    report = detect_gpus(torch, nvml, {})
    assert report.state is state
    assert said in report.message
    assert "runs on the CPU" in report.message


def test_the_real_module_answers_without_an_exception() -> None:
    assert isinstance(detect_gpus(CUDA_TORCH).state, GpuState)


def test_unknown_link_figures_are_none() -> None:
    nvml = FakeNvml([Card(fails={"nvmlDeviceGetMaxPcieLinkGeneration": 3})])
    (gpu,) = detect_gpus(CUDA_TORCH, nvml, {}).gpus
    assert gpu.pcie_generation_max is None
    assert gpu.pcie_bandwidth is None
    assert "PCIe" not in gpu.summary()


def test_a_failing_shutdown_is_no_matter() -> None:
    assert detect_gpus(CUDA_TORCH, FakeNvml(fails={"nvmlShutdown": 1}), {}).state is GpuState.READY


def test_same_major_version_of_cuda_suffices() -> None:
    newer = TorchBuild("2.13.0", True, "13.9")
    assert detect_gpus(newer, FakeNvml(cuda=13000), {}).state is GpuState.READY
    unknown = TorchBuild("unknown", True)
    assert detect_gpus(unknown, FakeNvml(cuda=11000), {}).state is GpuState.READY


def test_an_old_second_card_is_left_out_and_emulated_bf16_is_said() -> None:
    cards = [Card(uuid="GPU-1", capability=(7, 5)), Card(uuid="GPU-2", capability=(5, 2))]
    report = detect_gpus(CUDA_TORCH, FakeNvml(cards), {})
    assert [gpu.uuid for gpu in report.gpus] == ["GPU-1"]
    assert "emulated" in report.message


def test_an_old_card_before_a_good_one_says_how_to_use_the_other() -> None:
    """CUDA computes on the first card that it shows; a plan for the other one would be for nothing."""
    cards = [Card("GTX 1080", "GPU-old", capability=(6, 1)), Card("RTX 3090", "GPU-new", capability=(8, 6))]
    report = detect_gpus(CUDA_TORCH, FakeNvml(cards), {})
    assert report.state is GpuState.TOO_OLD
    assert "GTX 1080" in report.message
    assert "To use RTX 3090, set CUDA_VISIBLE_DEVICES to GPU-new" in report.message
    report = detect_gpus(CUDA_TORCH, FakeNvml(cards), {"CUDA_VISIBLE_DEVICES": "GPU-new"})
    assert (report.state, [gpu.name for gpu in report.gpus]) == (GpuState.READY, ["RTX 3090"])


def test_the_old_card_that_is_named_is_the_one_that_is_shown() -> None:
    cards = [Card("RTX 3090", "GPU-a"), Card("GTX 1080", "GPU-b", capability=(6, 1))]
    report = detect_gpus(CUDA_TORCH, FakeNvml(cards), {"CUDA_VISIBLE_DEVICES": "1"})
    assert report.state is GpuState.TOO_OLD
    assert "GTX 1080" in report.message
    assert "6.1" in report.message


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, [0, 1, 2]),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("", []),
        ("-1", []),
        ("0,7,1", [0]),
        ("GPU-bbbb", [1]),
        ("GPU-", []),  # names none of them, and CUDA takes no guess
        ("1,1", [1]),
        (" 1 , 2 ", [1, 2]),
    ],
)
def test_cuda_visible_devices(visible: str | None, indices: list[int]) -> None:
    cards = [Card(uuid=f"GPU-{letter * 4}") for letter in "abc"]
    gpus = detect_gpus(CUDA_TORCH, FakeNvml(cards), {}).gpus
    assert [gpu.index for gpu in select_visible(gpus, visible)] == indices


def test_a_hidden_card_is_said_to_be_hidden() -> None:
    report = detect_gpus(CUDA_TORCH, FakeNvml(), {"CUDA_VISIBLE_DEVICES": ""})
    assert report.state is GpuState.HIDDEN
    assert "CUDA_VISIBLE_DEVICES" in report.message


@given(
    count=st.integers(0, 3),
    capability=st.tuples(st.integers(3, 12), st.integers(0, 9)),
    cuda=st.integers(9000, 15000),
    torch=st.sampled_from([None, CPU_TORCH, CUDA_TORCH]),
    fails=st.dictionaries(
        st.sampled_from(
            ["nvmlInit", "nvmlDeviceGetCount", "nvmlShutdown", "nvmlSystemGetCudaDriverVersion_v2"]
        ),
        st.integers(1, 999),
        max_size=1,
    ),
    visible=st.none() | st.text("0123,-GPU", max_size=6),
)
def test_detection_never_raises_and_only_ready_is_silent(
    count: int,
    capability: tuple[int, int],
    cuda: int,
    torch: TorchBuild | None,
    fails: dict[str, int],
    visible: str | None,
) -> None:
    cards = [Card(uuid=f"GPU-{index}", capability=capability) for index in range(count)]
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    report = detect_gpus(torch, FakeNvml(cards, fails, cuda), environment)
    if report.state is GpuState.READY:
        assert report.gpus
        assert torch is CUDA_TORCH
    else:
        assert report.message
