from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from engine.hardware import CpuInfo, DiskInfo, GpuInfo, GpuState, Hardware, MemoryInfo, detect
from engine.units import GIB

CPU = CpuInfo("Ryzen 9", "avx2", ("portable", "avx2"), ("avx2",), 16, 8, 8, 8)
GPU = GpuInfo(0, "RTX 4090", "GPU-1", 24 * GIB, 22 * GIB, "580.1", (8, 9), 1, 16, 4, 16)
MACHINE = Hardware(
    CPU, (GPU,), MemoryInfo(64 * GIB, 50 * GIB), DiskInfo("/data", 100, 50), "Linux 6", GpuState.READY
)


def test_only_a_ready_gpu_counts() -> None:
    assert MACHINE.gpu is GPU
    for state in GpuState:
        assert replace(MACHINE, gpu_state=state).has_gpu is (state is GpuState.READY)
    alone = MACHINE.without_gpu()
    assert not alone.has_gpu
    assert alone.gpu_message
    assert alone.without_gpu() == alone


@pytest.mark.parametrize(
    "same",
    [
        replace(MACHINE, memory=MemoryInfo(32 * GIB, 1 * GIB, read_bandwidth=1e9)),
        replace(MACHINE, disk=DiskInfo("/other", 1, 1), os_name="Linux 7"),
        replace(MACHINE, gpus=(replace(GPU, vram_free=1, pcie_generation=4, driver="999"),)),
    ],
)
def test_what_changes_daily_leaves_the_fingerprint_alone(same: Hardware) -> None:
    assert same.fingerprint() == MACHINE.fingerprint()


@pytest.mark.parametrize(
    ("other", "part"),
    [
        (replace(MACHINE, cpu=replace(CPU, name="Ryzen 7")), "processor"),
        (replace(MACHINE, cpu=replace(CPU, isa="portable")), "instruction set"),
        (replace(MACHINE, cpu=replace(CPU, usable_cores=4)), "CPU threads"),
        (replace(MACHINE, gpus=(replace(GPU, name="RTX 3090"),)), "graphics card"),
        (replace(MACHINE, gpus=(replace(GPU, pcie_width_max=8),)), "graphics card"),
        (MACHINE.without_gpu(), "graphics card"),
    ],
)
def test_what_changes_speed_changes_the_fingerprint(other: Hardware, part: str) -> None:
    assert other.fingerprint() != MACHINE.fingerprint()
    before, now = MACHINE.fingerprint_parts(), other.fingerprint_parts()
    assert [key for key in before if before[key] != now[key]] == [part]


def test_another_number_of_threads_is_another_fingerprint() -> None:
    assert MACHINE.fingerprint(threads=7) == MACHINE.fingerprint()  # the default on eight cores
    assert MACHINE.fingerprint(threads=4) != MACHINE.fingerprint()


def test_lines_for_people() -> None:
    text = "\n".join(MACHINE.summary())
    for said in ("Ryzen 9, 8 cores, AVX2", "22.0 GiB of 24.0 GiB free", "PCIe 4 ×16", "50.0 GiB of 64.0 GiB"):
        assert said in text
    hybrid = replace(CPU, physical_cores=14, performance_cores=6, usable_cores=4)
    assert "14 cores (6 performance, 8 efficiency), 4 usable" in hybrid.summary()


def test_plain_data_is_json_and_says_what_matters() -> None:
    data = json.loads(json.dumps(MACHINE.to_dict()))
    assert data["has_gpu"] is True
    assert data["gpu_state"] == "ready"
    assert data["gpus"][0]["compute_capability"] == [8, 9]
    assert data["fingerprint"] == MACHINE.fingerprint()


def test_detection_of_this_machine() -> None:
    found = detect()
    json.dumps(found.to_dict())
    assert found.has_gpu or found.gpu_message
    assert len(found.summary()) >= 4
    assert found.fingerprint() == detect().fingerprint()


def test_hardware_plan_and_profiles_are_torch_free() -> None:
    code = (
        "import sys; from engine.hardware import detect; detect(); import engine.plan, engine.profile_store, "
        "engine.known_models; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
