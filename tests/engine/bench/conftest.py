from __future__ import annotations

from functools import partial

import pytest

from engine.calibration import kernels
from kernels.tuning_probe import measure_tuning


@pytest.fixture(autouse=True)
def kernels_chosen_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is loaded for a benchmark measures for milliseconds which kernels are the fastest."""
    monkeypatch.setattr(kernels, "measure_tuning", partial(measure_tuning, seconds=1e-3))
