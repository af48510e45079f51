from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernels import threads


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_siblings_count_once(tmp_path: Path) -> None:
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        write(tmp_path / f"cpu{cpu}/topology/thread_siblings_list", siblings + "\n")
    assert threads._physical_cores({0, 1, 2, 3}, tmp_path) == 2
    assert threads._physical_cores({0, 2}, tmp_path) == 1
    assert threads._physical_cores({0, 1}, tmp_path) == 2
    assert threads._physical_cores({7, 8}, tmp_path) == 2  # no lists for these


def test_quota_of_a_version_2_group(tmp_path: Path) -> None:
    process = tmp_path / "cgroup"
    process.write_text("0::/user/app\n")
    assert threads._quota(tmp_path, process) is None
    write(tmp_path / "user/app/cpu.max", "max 100000\n")
    assert threads._quota(tmp_path, process) is None
    write(tmp_path / "user/cpu.max", "250000 100000\n")  # the parent's limit counts, too
    assert threads._quota(tmp_path, process) == 2.5
    write(tmp_path / "user/app/cpu.max", "50000 100000\n")
    assert threads._quota(tmp_path, process) == 0.5


def test_quota_of_a_version_1_group_seen_from_its_container(tmp_path: Path) -> None:
    process = tmp_path / "cgroup"
    process.write_text("5:memory:/x\n4:cpu,cpuacct:/outside/name\n")
    write(tmp_path / "cpu/cpu.cfs_quota_us", "-1\n")
    write(tmp_path / "cpu/cpu.cfs_period_us", "100000\n")
    assert threads._quota(tmp_path, process) is None
    write(tmp_path / "cpu/cpu.cfs_quota_us", "300000\n")
    assert threads._quota(tmp_path, process) == 3.0


def test_no_groups_no_quota(tmp_path: Path) -> None:
    assert threads._quota(tmp_path, tmp_path / "missing") is None


@pytest.mark.parametrize(("quota", "cores"), [(None, 4), (2.5, 2), (0.5, 1), (64.0, 4)])
def test_the_smallest_limit_wins(monkeypatch: pytest.MonkeyPatch, quota: float | None, cores: int) -> None:
    monkeypatch.setattr(threads, "_allowed_cpus", lambda: frozenset(range(8)))
    monkeypatch.setattr(threads, "_physical_cores", lambda cpus: len(cpus) // 2)
    monkeypatch.setattr(threads, "_quota", lambda: quota)
    assert threads.usable_cores() == cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity masks")
def test_the_affinity_mask_is_respected() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert threads.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
