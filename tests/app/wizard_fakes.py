"""Made-up computers and a scripted `Knowledge`, for the tests of the wizard and for looking at its pages."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from app.wizard.catalog import entry_of
from app.wizard.offers import Offer
from app.wizard.state import Choice, Kind
from engine.budget import download_requirements
from engine.errors import CheckpointError, EngineError
from engine.hardware import CpuInfo, DiskInfo, GpuInfo, GpuState, Hardware, MemoryInfo
from engine.kernel_choice import KernelChoice
from engine.known_models import mixtral_8x7b
from engine.latency import Curve, LatencyModel, Together
from engine.options import LoadOptions
from engine.plan import make_plan
from engine.profile import Probe, ProbeKind, Profile
from kernels.formats import WeightFormat
from kernels.isa import Isa
from kernels.tuning import FormatTuning, Way

GIB = 2**30

LAPTOP = Hardware(
    cpu=CpuInfo(
        name="Intel Core i5-8250U",
        isa="avx2",
        isas=("portable", "avx2"),
        features=("avx", "avx2", "fma", "f16c"),
        logical_cores=8,
        physical_cores=4,
        performance_cores=4,
        usable_cores=4,
    ),
    gpus=(),
    memory=MemoryInfo(total=16 * GIB, available=11 * GIB, read_bandwidth=21e9),
    disk=DiskInfo(path="/mnt/data/fiddler-chat", total=500 * GIB, free=212 * GIB),
    os_name="Linux 6.8",
    gpu_state=GpuState.NO_DRIVER,
    gpu_message="No NVIDIA driver was found, so no NVIDIA graphics card can be used. "
    "All work runs on the CPU.",
)
WORKSTATION = Hardware(
    cpu=CpuInfo(
        name="AMD Ryzen 9 7950X",
        isa="avx512_bf16",
        isas=("portable", "avx2", "avx512", "avx512_bf16"),
        features=("avx2", "fma", "avx512f", "avx512_bf16"),
        logical_cores=32,
        physical_cores=16,
        performance_cores=16,
        usable_cores=16,
    ),
    gpus=(
        GpuInfo(
            index=0,
            name="NVIDIA GeForce RTX 4090",
            uuid="GPU-0",
            vram_total=24 * GIB,
            vram_free=22 * GIB,
            driver="570.86",
            compute_capability=(8, 9),
            pcie_generation_max=4,
            pcie_width_max=16,
        ),
    ),
    memory=MemoryInfo(total=128 * GIB, available=119 * GIB, read_bandwidth=62e9),
    disk=DiskInfo(path="/mnt/data/fiddler-chat", total=2000 * GIB, free=900 * GIB),
    os_name="Linux 6.8",
    gpu_state=GpuState.READY,
)
HIDDEN_CARD = replace(
    WORKSTATION,
    gpu_state=GpuState.TORCH_WITHOUT_CUDA,
    gpu_message="There is a graphics card (NVIDIA GeForce RTX 4090), but the installed torch 2.13+cpu is "
    "built without CUDA. All work runs on the CPU. To use the card, install torch with CUDA.",
)


CHOICE = KernelChoice(
    Isa.AVX2,
    WeightFormat.INT4,
    FormatTuning(0, many_eight_bit=True),
    panel_tokens=8,
    speedup=1.9,
    seconds={Way.EIGHT_BIT: {1: 1e-3}, Way.EXPANDED: {1: 1.9e-3}},
)


TOKEN_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def make_probes(gpu: bool = False) -> tuple[Probe, ...]:
    """The probes of a calibration, as they come."""
    probes = [Probe(ProbeKind.KERNELS, 4, 2.9e-4)]
    probes += [Probe(ProbeKind.CPU_EXPERT, n, 3e-4 + 8e-5 * n, 0.02) for n in TOKEN_COUNTS]
    if gpu:
        probes += [Probe(ProbeKind.GPU_EXPERT, n, 1.2e-4 + 1e-7 * n, 0.01) for n in TOKEN_COUNTS]
        probes += [
            Probe(ProbeKind.WEIGHT_COPY, 0, 1.4e-2, 0.03),
            Probe(ProbeKind.COPY_START, 0, 4.1e-5, 0.03),
            Probe(ProbeKind.CPU_START, 0, 1.2e-5, 0.03),
            Probe(ProbeKind.CPU_ALONE, 1, 3.7e-4, 0.02),
            Probe(ProbeKind.CPU_TOGETHER, 1, 4.5e-4, 0.04),
            Probe(ProbeKind.COPY_TOGETHER, 1, 1.6e-2, 0.0),
            Probe(ProbeKind.ACTIVATION_COPY, 1, 2.7e-5, 0.1),
        ]
    probes += [
        Probe(ProbeKind.OTHER_DECODE, 1, 6.2e-3, 0.04),
        Probe(ProbeKind.POPULARITY, 900, 5.1e-3, 0.0),
        Probe(ProbeKind.DECODE, 1, 2.05e-2, 0.02),
    ]
    return tuple(probes)


def make_profile(gpu: bool = False, layers: int = 30) -> Profile:
    """A calibration's result."""
    points = [(n, 3e-4 + 8e-5 * n) for n in TOKEN_COUNTS]
    fast = [(n, 1.2e-4 + 1e-7 * n) for n in TOKEN_COUNTS]
    latency = LatencyModel(
        Curve.fit(points),
        6.2e-3,
        Curve.fit(fast) if gpu else None,
        1.4e-2 if gpu else None,
        Curve.fit([(1, 2.7e-5)]) if gpu else None,
        Together((1,), (1.22,), (1.6e-2,)) if gpu else None,
    )
    return Profile(
        model_name="Starter model",
        hardware={"processor": "any"},
        model={"name": "any"},
        created="2026-03-12T10:00:00+00:00",
        threads=4,
        latency=latency,
        popularity=np.full((layers, 8), 0.25),
        probes=make_probes(gpu),
        expert_slots=0,
        predicted_decode=0.0198,
        measured_decode=0.0205,
    )


@dataclass
class ScriptedKnowledge:
    """Implements `app.wizard.offers.Knowledge` with real plans for a made-up computer."""

    hardware: Hardware = LAPTOP
    detect_error: EngineError | None = None
    detect_gate: threading.Event | None = None
    found: tuple[Profile | None, str] = (None, "")
    profile_error: EngineError | None = None
    bad_folders: dict[Path, EngineError] = field(default_factory=dict)
    disk_needed: int | None = None  # None: as the model's size
    plans: list[Choice] = field(default_factory=list)
    offer_gate: threading.Event | None = None  # working out an offer waits for it

    def detect(self, *, quick: bool = False) -> Hardware:
        if self.detect_gate is not None:
            assert self.detect_gate.wait(10)
        if self.detect_error is not None:
            raise self.detect_error
        return self.hardware

    def offer(self, choice: Choice, hardware: Hardware, options: LoadOptions) -> Offer:
        self.plans.append(choice)
        if self.offer_gate is not None:
            assert self.offer_gate.wait(10)
        entry = entry_of(choice)
        folder = choice.folder or Path("/mnt/data/fiddler-chat/models/starter")
        if folder in self.bad_folders:
            raise self.bad_folders[folder]
        info: Any = entry.info(folder) if entry else mixtral_8x7b(folder)
        needed = self.disk_needed or info.total_bytes
        needs = download_requirements(hardware.disk, info.name, needed).needs
        disk = None if choice.kind is Kind.FOLDER else needs[0]
        return Offer(choice, info, make_plan(hardware, info, options), disk)

    def profile(self, model: Path, hardware: Hardware, options: LoadOptions) -> tuple[Profile | None, str]:
        if self.profile_error is not None:
            raise self.profile_error
        return self.found


def not_a_model(folder: Path) -> CheckpointError:
    """The engine's words for a folder without a model."""
    return CheckpointError(
        "This folder does not hold a model.",
        why=f"There is no config.json in {folder}.",
        action="Choose the folder that holds config.json and the .safetensors files.",
    )
