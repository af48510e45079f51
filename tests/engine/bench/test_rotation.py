from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bench.rotation import last_level_cache, plan_rotation, wanted_bytes
from engine.errors import MemoryFullError
from engine.units import GIB, MIB


def cache(root: Path, cpu: int, index: int, level: int, size: str, shared: str) -> None:
    folder = root / f"sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", str(level)), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(text + "\n")


def test_each_last_level_cache_counts_once(tmp_path: Path) -> None:
    for cpu in range(4):
        cache(tmp_path, cpu, 0, 1, "32K", str(cpu))
        cache(tmp_path, cpu, 1, 2, "1024K", str(cpu))
        cache(tmp_path, cpu, 2, 3, "32768K", "0-1" if cpu < 2 else "2-3")
    assert last_level_cache(tmp_path) == 2 * 32 * MIB


def test_a_cache_in_megabytes_and_one_that_is_not_told(tmp_path: Path) -> None:
    cache(tmp_path, 0, 2, 3, "320M", "0-15")
    cache(tmp_path, 1, 2, 3, "none", "0-15")
    assert last_level_cache(tmp_path) == 320 * MIB


def test_no_caches_are_known_without_their_folder(tmp_path: Path) -> None:
    assert last_level_cache(tmp_path) is None


def test_large_caches_want_more_than_the_least() -> None:
    assert wanted_bytes(None) == wanted_bytes(32 * MIB) == 4 * GIB
    assert wanted_bytes(GIB) == 8 * GIB


@given(
    nbytes=st.integers(1, 400 * MIB),
    experts=st.integers(1, 8),
    wanted=st.integers(1, 16 * GIB),
    available=st.integers(0, 256 * GIB),
)
def test_a_rotation_fits_and_is_no_larger_than_needed(
    nbytes: int, experts: int, wanted: int, available: int
) -> None:
    try:
        rotation = plan_rotation(nbytes, experts, wanted, available)
    except MemoryFullError:
        assert 2 * experts * nbytes > 0.6 * available - 1
        return
    assert rotation.total == rotation.count * nbytes <= 0.6 * available
    assert rotation.count % experts == 0
    assert rotation.count >= 2 * experts  # the next call's experts are other ones
    if rotation.short:
        assert rotation.total + experts * nbytes > int(0.6 * available)
    elif rotation.count > 2 * experts:
        assert rotation.total - experts * nbytes < wanted


def test_a_shortage_tells_what_is_needed() -> None:
    with pytest.raises(MemoryFullError, match=r"1\.3 GiB are needed") as caught:
        plan_rotation(336 * MIB, 2, 4 * GIB, GIB)
    assert "--shape starter" in caught.value.action
