from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engine.errors import HardwareError
from engine.hardware.cpu import detect_cpu, parse_features, parse_name
from kernels.cgroup import CgroupLimits, read_limits
from kernels.cpu import CpuPool

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Core(TM)   i5-13600K
flags\t\t: fpu sse2 fma avx2 f16c avx_vnni
bugs\t\t: spectre_v1

processor\t: 1
model name\t: something else
"""


def test_name_and_features_of_cpuinfo() -> None:
    assert parse_name(CPUINFO) == "Intel(R) Core(TM) i5-13600K"
    assert parse_features(CPUINFO) == ("avx2", "fma", "f16c", "avx_vnni")
    assert parse_name("") is None
    assert parse_features("model name : x") == ()


def test_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIDDLER_MAX_ISA", raising=False)
    cpu = detect_cpu(CgroupLimits())
    assert cpu.name
    assert cpu.isas[0] == "portable"
    assert cpu.isa == cpu.isas[-1]
    assert 1 <= cpu.usable_cores <= cpu.physical_cores <= cpu.logical_cores
    if sys.platform == "linux":
        assert ("avx2" in cpu.features) == ("avx2" in cpu.isas)


def test_the_cap_and_the_quota_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIDDLER_MAX_ISA", "portable")
    cpu = detect_cpu(CgroupLimits(cpus=1.2))
    assert cpu.isa == "portable"
    assert (cpu.usable_cores, cpu.quota) == (1, 1.2)


def test_the_plan_and_the_pool_count_the_same_threads() -> None:
    with CpuPool() as pool:
        assert pool.threads == detect_cpu(read_limits()).default_threads


def test_an_impossible_cap_is_an_error_for_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIDDLER_MAX_ISA", "avx9")
    with pytest.raises(HardwareError, match="avx9") as caught:
        detect_cpu(CgroupLimits())
    assert caught.value.action


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_affinity_is_respected() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert detect_cpu(CgroupLimits()).usable_cores == 1
    finally:
        os.sched_setaffinity(0, before)


def test_a_mac_asks_sysctl(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        assert command[-1] == "machdep.cpu.brand_string"
        return subprocess.CompletedProcess(command, 0, stdout="Apple M3\n")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    cpu = detect_cpu(CgroupLimits())
    assert cpu.name == "Apple M3"
    assert cpu.features == ()
    assert cpu.physical_cores >= 1  # from psutil: there is no /sys


def test_a_processor_without_a_name_is_still_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        raise FileNotFoundError(command[0])

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(subprocess, "run", run)
    assert detect_cpu(CgroupLimits()).name
