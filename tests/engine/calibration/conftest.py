from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.calibration.probes import DecodeProbes
from engine.calibration.timing import Timing


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "profiles"


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """Every probe runs three steps and finds a millisecond; returns the probes that were taken."""
    taken: list[Callable[[], object]] = []

    def repeat(_: DecodeProbes, one: Callable[[], float], seconds: float) -> Timing:
        taken.append(one)
        for _repetition in range(3):
            assert one() > 0
        return Timing(1e-3, 0.02)

    monkeypatch.setattr(DecodeProbes, "_repeat", repeat)
    return taken
