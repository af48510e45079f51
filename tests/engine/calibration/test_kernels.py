"""The choice of kernels in a calibration, with times that are scripted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.calibration import calibrate, kernels
from engine.calibration.probes import TOKEN_COUNTS, DecodeProbes
from engine.calibration.timing import Timing
from engine.errors import Cancelled
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.profile import Probe, ProbeKind
from engine.profile_store import find_profile
from engine.progress import CancelToken, Progress
from kernels.cpu import CpuPool
from kernels.formats import WeightFormat
from kernels.tuning import FormatTuning, Way
from kernels.tuning_probe import TuningResult
from tests.engine.calibration.one_model import MACHINE, OneModel, add_tokenizer

CHOSEN = FormatTuning(1, many_eight_bit=True)


@pytest.fixture
def int4(make_model: Callable[..., Any]) -> Iterator[OneModel]:
    model = make_model(vocab_size=256, num_hidden_layers=2)
    add_tokenizer(model.path)
    options = LoadOptions(threads=1, device="cpu", precision="int4")
    parts = load_model(model.path, options)
    yield OneModel(parts, options)
    parts.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether rounding was allowed, for each time that kernels were chosen."""
    asked: list[bool] = []

    def measure(pool: CpuPool, shape: Any, blocks: Any, **how: Any) -> TuningResult:
        asked.append(how["eight_bit"])
        assert len({block.data_ptr() for block in blocks}) == 8
        for share in (0.0, 0.3, 0.301, 0.9):
            how["before_round"](share)
        chosen = CHOSEN if how["eight_bit"] else FormatTuning(2)
        tuning = replace(pool.tuning.with_format(shape.format, chosen), panel_tokens=5)
        times = {Way.EXPANDED: {1: 2e-3}, Way.EIGHT_BIT: {1: 1e-3}}
        return TuningResult(tuning, chosen, times, {4: 3e-3}, {4: 2e-3}, 2.0)

    monkeypatch.setattr(kernels, "measure_tuning", measure)
    return asked


def test_experts_are_measured_with_the_chosen_kernels(
    int4: OneModel, folder: Path, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[FormatTuning] = []
    pool = int4.parts.pool

    def repeat(_: DecodeProbes, one: Callable[[], float], seconds: float) -> Timing:
        seen.append(pool.tuning.formats[WeightFormat.INT4])
        return Timing(1e-3, 0.0)

    monkeypatch.setattr(DecodeProbes, "_repeat", repeat)
    shown: list[Probe] = []
    steps: list[Progress] = []
    profile = calibrate(int4, progress=steps.append, on_probe=shown.append, folder=folder)
    assert asked == [True]
    assert set(seen) == {CHOSEN}
    assert len(seen) == len(TOKEN_COUNTS) + 2
    assert shown[0] == Probe(ProbeKind.KERNELS, 4, 2e-3)
    assert [step.done for step in steps if "kernels" in step.what][:3] == [0.0, 0.3, 0.9]
    assert profile.kernels is not None
    assert (profile.kernels.tuning, profile.kernels.panel_tokens) == (CHOSEN, 5)
    assert "(2.0 × faster)" in profile.kernels.text()
    found = find_profile(MACHINE, int4.info, threads=1, precision="int4", folder=folder).profile
    assert found is not None
    assert found.kernels == profile.kernels


def test_an_unfinished_calibration_keeps_the_choice_but_not_the_pool(
    int4: OneModel, folder: Path, asked: list[bool], taken: list[Any]
) -> None:
    cancel = CancelToken()
    before = int4.parts.pool.tuning
    with pytest.raises(Cancelled):
        calibrate(int4, cancel=cancel, on_probe=lambda _: cancel.cancel(), folder=folder)
    assert int4.parts.pool.tuning == before
    profile = calibrate(int4, folder=folder)
    assert asked == [True]
    assert profile.kernels is not None
    assert int4.parts.pool.tuning.formats[WeightFormat.INT4] == profile.kernels.tuning == CHOSEN


def test_choosing_can_be_cancelled(int4: OneModel, folder: Path, asked: list[bool], taken: list[Any]) -> None:
    cancel = CancelToken()
    before = int4.parts.pool.tuning

    def stop(progress: Progress) -> None:
        if progress.done > 0.2:
            cancel.cancel()

    with pytest.raises(Cancelled):
        calibrate(int4, cancel=cancel, progress=stop, folder=folder)
    assert asked == [True]
    assert taken == []
    assert int4.parts.pool.tuning == before


def test_rounding_is_not_measured_where_it_is_forbidden(
    int4: OneModel, folder: Path, asked: list[bool], taken: list[Any]
) -> None:
    calibrate(int4, folder=folder)
    int4.options = replace(int4.options, exact_activations=True)
    profile = calibrate(int4, folder=folder)
    assert asked == [True, False]
    assert profile.exact_activations
    assert profile.kernels is not None
    assert not profile.kernels.tuning.eight_bit
    assert len(list(folder.glob("*.json"))) == 2  # the other one is kept
