from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernels import bandwidth
from kernels.bandwidth import PlainPool, available_memory, measure_read_gbs
from kernels.cgroup import CgroupLimits
from kernels.cpu import CpuPool

MIB = 1 << 20


class Recorder:
    """A pool that reads nothing and takes a given time for it."""

    def __init__(self, clock: list[float], seconds: list[float]) -> None:
        self.threads = 2
        self.native = self
        self.calls: list[tuple[int, int, bool, int]] = []
        self._clock, self._seconds = clock, itertools.cycle(seconds)

    def read(self, address: int, words: int, four_streams: bool, prefetch_words: int) -> int:
        self.calls.append((address, words, four_streams, prefetch_words))
        self._clock[0] += next(self._seconds)
        return 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(bandwidth, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


def test_the_best_turn_counts_and_all_memory_and_styles_are_used(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "_TURN_BYTES", MIB)
    pool = Recorder(clock, [0.4, 0.5, 0.25])
    rate = measure_read_gbs(pool, seconds=20.0, max_bytes=5 * MIB + 12345)
    assert rate == pytest.approx(MIB / 0.25 / 1e9)
    assert {words for _, words, _, _ in pool.calls} == {MIB // 8}
    first = min(address for address, *_ in pool.calls)
    assert {(address - first) / MIB for address, *_ in pool.calls} == {0, 1, 2, 3, 4}
    assert len({style for _, _, *style in map(tuple, pool.calls) for style in [tuple(style)]}) == 4
    assert clock[0] == pytest.approx(20.0, abs=0.5)


def test_every_style_is_tried_however_short_the_time(clock: list[float]) -> None:
    pool = Recorder(clock, [3.0])
    measure_read_gbs(pool, seconds=0.0, max_bytes=MIB)
    assert len(pool.calls) == 4


@pytest.mark.parametrize(("available", "words"), [(64 * MIB, 16 * MIB // 8), (100, 3), (0, 1)])
def test_takes_a_quarter_of_the_available_memory(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, available: int, words: int
) -> None:
    monkeypatch.setattr(bandwidth, "available_memory", lambda: available)
    pool = Recorder(clock, [1.0])
    measure_read_gbs(pool, seconds=0.0)
    assert {call[1] for call in pool.calls} == {words}


def test_the_control_group_limits_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bandwidth.psutil, "virtual_memory", lambda: SimpleNamespace(available=1000))
    for limits, expected in (
        (CgroupLimits(), 1000),
        (CgroupLimits(memory=700, memory_used=500), 200),
        (CgroupLimits(memory=5000), 1000),
        (CgroupLimits(memory=5, memory_used=9), 0),
    ):
        monkeypatch.setattr(bandwidth, "read_limits", lambda limits=limits: limits)
        assert available_memory() == expected


@pytest.mark.parametrize("kind", [CpuPool, PlainPool])
def test_real_pools_read_at_a_rate(kind: Any) -> None:
    with kind(2) as pool:
        assert 0.1 < measure_read_gbs(pool, seconds=0.05, max_bytes=64 * MIB) < 1e4


def test_measuring_does_not_import_torch() -> None:
    code = (
        "import sys; from kernels.bandwidth import PlainPool, measure_read_gbs\n"
        "with PlainPool(2) as pool: measure_read_gbs(pool, 0.0, 1 << 20)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
