from __future__ import annotations

import os
import sys

import pytest

from kernels import threads
from kernels.cgroup import CgroupLimits
from kernels.topology import Topology

HYBRID = Topology(
    (*(frozenset({2 * core, 2 * core + 1}) for core in range(8)), frozenset({16}), frozenset({17})),
    efficiency=frozenset({16, 17}),
)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Eight performance cores with two hardware threads each, two efficiency cores, no limits."""
    monkeypatch.setattr(threads, "detect_topology", lambda: HYBRID)
    monkeypatch.setattr(threads, "allowed_cpus", lambda: None)
    monkeypatch.setattr(threads, "read_limits", CgroupLimits)
    return monkeypatch


def test_performance_cores_first_and_one_left_by_default(machine: pytest.MonkeyPatch) -> None:
    assert threads.usable_cores() == 8
    assert threads.usable_cpus() == (0, 2, 4, 6, 8, 10, 12, 14, 16, 17)
    assert threads.default_pool_threads() == 7


@pytest.mark.parametrize(("quota", "cores", "default"), [(None, 8, 7), (6.9, 6, 5), (2.5, 2, 2), (0.5, 1, 1)])
def test_the_quota_cuts_both(
    machine: pytest.MonkeyPatch, quota: float | None, cores: int, default: int
) -> None:
    machine.setattr(threads, "read_limits", lambda: CgroupLimits(cpus=quota))
    assert threads.usable_cores() == cores
    assert threads.default_pool_threads() == default
    assert len(threads.usable_cpus()) == (cores if quota is not None else 10)


def test_the_affinity_mask_cuts_both(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(threads, "allowed_cpus", lambda: frozenset({3, 4, 5, 17}))
    assert threads.usable_cores() == 2
    assert threads.usable_cpus() == (3, 4, 17)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity masks")
def test_the_affinity_mask_of_this_process_is_respected() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(before)})
        assert threads.usable_cores() == 1
        assert threads.usable_cpus() == (max(before),)
    finally:
        os.sched_setaffinity(0, before)


def test_a_system_without_sys_counts_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert threads.detect_topology().physical >= 1
    assert threads.usable_cores() >= 1


@pytest.mark.parametrize(("value", "allowed"), [(None, True), ("1", True), ("", True), ("0", False)])
def test_pinning_can_be_switched_off(
    monkeypatch: pytest.MonkeyPatch, value: str | None, allowed: bool
) -> None:
    monkeypatch.delenv(threads.PIN_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(threads.PIN_VARIABLE, value)
    assert threads.pinning_allowed() is allowed
