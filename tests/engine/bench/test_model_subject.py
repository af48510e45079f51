"""Loading what a benchmark measures: with the kernels that a calibrated engine would use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.bench.compare_run import setup_of
from engine.bench.model_subject import load_subject
from engine.calibration import kernels
from engine.errors import ShortageError
from engine.progress import CancelToken, ignore_progress
from kernels.cpu import CpuPool
from kernels.formats import WeightFormat
from kernels.tuning import FormatTuning, Way
from kernels.tuning_probe import TuningResult
from tests.engine.bench.subjects import tiny

ROUNDED, EXACT = FormatTuning(1, many_eight_bit=True), FormatTuning(2)


@pytest.mark.parametrize("exact", [False, True])
def test_the_pool_uses_the_kernels_that_are_found_fastest(
    exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(pool: CpuPool, _shape: Any, _blocks: Any, **how: Any) -> TuningResult:
        chosen = ROUNDED if how["eight_bit"] else EXACT
        tuning = replace(pool.tuning.with_format(WeightFormat.INT4, chosen), panel_tokens=5)
        times = {Way.EXPANDED: {1: 2e-3}, Way.EIGHT_BIT: {1: 1e-3}}
        return TuningResult(tuning, chosen, times, {4: 3e-3}, {4: 2e-3}, 2.0)

    monkeypatch.setattr(kernels, "measure_tuning", measure)
    subject = tiny()
    options = replace(subject.options, precision="int4", exact_activations=exact)
    with load_subject(replace(subject, options=options), ignore_progress, CancelToken()) as loaded:
        tuning = loaded.parts.pool.tuning
        assert setup_of(loaded).exact_activations == exact
    assert tuning.formats[WeightFormat.INT4] == (EXACT if exact else ROUNDED)
    assert tuning.panel_tokens == 5


def test_too_large_a_model_of_random_weights_can_be_made_smaller() -> None:
    subject = tiny()
    options = replace(subject.options, ram_reserve=1 << 50)
    with pytest.raises(ShortageError, match="memory missing") as caught:
        load_subject(replace(subject, options=options), ignore_progress, CancelToken())
    assert "--layers" in caught.value.action
    assert "available" in caught.value.why
