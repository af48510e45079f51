"""A loaded model multiplies its experts as its calibration chose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.kernel_choice import KernelChoice
from engine.latency import Curve, LatencyModel
from engine.options import LoadOptions
from engine.profile import Profile
from engine.profile_store import model_parts, save_profile
from engine.runtime import Engine
from kernels.formats import WeightFormat
from kernels.isa import Isa, default_isa
from kernels.tuning import FormatTuning
from tests.engine.generation.tokenizer_folders import byte_level_folder

INT4 = LoadOptions(threads=1, device="cpu", precision="int4")
CHOSEN = FormatTuning(3, few_eight_bit=True, many_eight_bit=True, exact_tokens=1)
CHOICE = KernelChoice(default_isa(), WeightFormat.INT4, CHOSEN, panel_tokens=7)


@pytest.fixture
def folder(make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model without any saved calibration."""
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    path: Path = make_model(seed=5, vocab_size=410).path
    byte_level_folder(path)
    return path


def measured(engine: Engine, kernels: KernelChoice | None) -> Profile:
    """A calibration of this machine as the engine uses it."""
    config, options = engine.info.config, engine.options
    return Profile(
        engine.info.name,
        engine.hardware.fingerprint_parts(options.threads),
        model_parts(engine.info),
        "2026-01-01",
        1,
        LatencyModel(Curve.fit([(1, 1e-3), (2, 1.5e-3)]), 1e-3),
        np.ones((config.num_layers, config.num_experts)),
        (),
        0,
        0.1,
        0.1,
        options.precision,
        kernels,
        options.exact_experts,
    )


def test_the_saved_choice_is_used_when_the_model_is_loaded_again(folder: Path) -> None:
    with Engine.load(folder, INT4) as engine:
        default = engine.parts.pool.tuning
        save_profile(measured(engine, CHOICE))
    with Engine.load(folder, INT4) as engine:
        tuning = engine.parts.pool.tuning
        assert engine.status().calibrated
    assert tuning.formats == {**default.formats, WeightFormat.INT4: CHOSEN}
    assert tuning.panel_tokens == 7


def test_a_calibration_without_a_choice_means_the_defaults(folder: Path) -> None:
    with Engine.load(folder, INT4) as engine:
        default = engine.parts.pool.tuning
        save_profile(measured(engine, None))
        engine.use_profile(measured(engine, None))
        assert engine.parts.pool.tuning == default
    with Engine.load(folder, INT4) as engine:
        assert engine.status().calibrated
        assert engine.parts.pool.tuning == default


def test_a_new_calibration_is_used_at_once(folder: Path) -> None:
    with Engine.load(folder, INT4) as engine:
        engine.use_profile(measured(engine, CHOICE))
        assert engine.parts.pool.tuning.formats[WeightFormat.INT4] == CHOSEN


def test_rounding_that_is_forbidden_is_not_used(folder: Path) -> None:
    exact = replace(INT4, exact_activations=True)
    with Engine.load(folder, INT4) as engine:
        default = engine.parts.pool.tuning
        rounding = measured(engine, CHOICE)
    save_profile(rounding)
    with Engine.load(folder, exact) as engine:
        assert not engine.status().calibrated
        assert "forbidden now" in engine.status().stale_calibration
        assert engine.parts.pool.tuning == default
        careful = KernelChoice(default_isa(), WeightFormat.INT4, FormatTuning(2), panel_tokens=5)
        save_profile(measured(engine, careful))
    with Engine.load(folder, exact, rounding) as engine:  # given by the caller, against the option
        assert engine.parts.pool.tuning == default
    with Engine.load(folder, exact) as engine:
        assert engine.status().calibrated
        assert engine.parts.pool.tuning.formats[WeightFormat.INT4] == FormatTuning(2)
    with Engine.load(folder, INT4) as engine:
        assert engine.parts.pool.tuning.formats[WeightFormat.INT4] == CHOSEN


def test_a_choice_for_another_instruction_set_is_not_used(folder: Path) -> None:
    other = next(isa for isa in Isa if isa is not default_isa())
    with Engine.load(folder, INT4) as engine:
        default = engine.parts.pool.tuning
        engine.use_profile(measured(engine, replace(CHOICE, isa=other)))
        assert engine.parts.pool.tuning == default
