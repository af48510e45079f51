"""What the process takes: peaks as the system tells them, and the budget's verdict."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from engine.bench.memory_watch import MemoryFigures, MemoryWatch, peak_ram
from engine.units import GIB, MIB


def test_the_peak_is_read_from_the_systems_status(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nVmPeak:\t  999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n")
    if sys.platform != "win32":
        assert peak_ram(status) == 2 * MIB
        assert peak_ram(tmp_path / "missing") == 0


def test_memory_that_was_taken_shows_in_the_peak_after_it_is_freed() -> None:
    if sys.platform != "linux":
        pytest.skip("the system does not tell a peak in the same way")
    watch = MemoryWatch(torch.device("cpu"), 0, 0)
    before = watch.figures(0)
    block = torch.ones(256 * MIB, dtype=torch.uint8)
    held = watch.figures(0)
    del block
    after = watch.figures(0)
    assert held.ram_now > before.ram_now + 200 * MIB
    assert after.ram_now < held.ram_now - 200 * MIB
    assert after.ram_peak >= held.ram_now - MIB  # Linux counts pages of each CPU in lots


def test_the_allocator_and_cuda_itself_share_the_budget() -> None:
    figures = MemoryFigures(1, 2, 3, gpu_allocator=23 * GIB, gpu_context=GIB // 2, gpu_budget=24 * GIB)
    assert figures.gpu_peak == 23.5 * GIB
    assert figures.within_budget
    assert not MemoryFigures(1, 2, 3, 24 * GIB, 1, 24 * GIB).within_budget
    assert MemoryFigures(1, 2, 3).within_budget  # no GPU
