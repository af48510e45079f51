from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.errors import FileError
from engine.hardware.bandwidth import measure_read_bandwidth
from engine.hardware.memory import detect_disk, detect_memory, has_plugged_memory, within_limits
from engine.units import GIB, MIB
from kernels.cgroup import CgroupLimits


def test_this_machine() -> None:
    memory = detect_memory(CgroupLimits())
    assert 0 < memory.available <= memory.total


@pytest.mark.parametrize(
    ("limits", "total", "available", "limit"),
    [
        (CgroupLimits(), 32, 20, None),
        (CgroupLimits(memory=16 * GIB, memory_used=2 * GIB), 16, 14, 16),
        (CgroupLimits(memory=24 * GIB, memory_used=1 * GIB), 24, 20, 24),
        (CgroupLimits(memory=64 * GIB, memory_used=1 * GIB), 32, 20, None),
        (CgroupLimits(memory=4 * GIB, memory_used=5 * GIB), 4, 0, 4),
    ],
)
def test_the_container_limit_is_respected(
    limits: CgroupLimits, total: int, available: int, limit: int | None
) -> None:
    memory = within_limits(32 * GIB, 20 * GIB, limits)
    assert (memory.total, memory.available) == (total * GIB, available * GIB)
    assert memory.limit == (None if limit is None else limit * GIB)


def test_memory_that_grows_counts_up_to_its_limit() -> None:
    limits = CgroupLimits(memory=256 * GIB, memory_used=3 * GIB)
    memory = within_limits(32 * GIB, 20 * GIB, limits, may_grow=True)
    assert (memory.total, memory.available, memory.may_grow) == (256 * GIB, 253 * GIB, True)
    assert "given more" in memory.summary()
    plain = within_limits(32 * GIB, 20 * GIB, CgroupLimits(), may_grow=True)
    assert (plain.total, plain.may_grow) == (32 * GIB, True)


def test_plugged_memory_is_a_device_at_its_driver(tmp_path: Path) -> None:
    assert not has_plugged_memory(tmp_path / "none")
    (tmp_path / "bind").touch()
    assert not has_plugged_memory(tmp_path)
    (tmp_path / "virtio3").mkdir()
    assert has_plugged_memory(tmp_path)


def test_the_disk_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    disk = detect_disk(tmp_path / "a" / "b")
    assert 0 < disk.free <= disk.total
    assert disk.path == str(tmp_path / "a" / "b")


def test_bandwidth_is_a_rate_and_takes_little_memory() -> None:
    assert 0 < measure_read_bandwidth(1, 64 * MIB, seconds=0.01) < 1e13


def test_a_disk_that_cannot_be_examined_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "disk_usage", refuse)
    with pytest.raises(FileError, match="cannot be examined"):
        detect_disk(tmp_path)
