"""What the loaded engine tells about a saved calibration that does not fit this machine any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.latency import Curve, LatencyModel
from engine.options import LoadOptions
from engine.profile import Profile
from engine.profile_store import model_parts, save_profile
from engine.runtime import Engine
from tests.engine.generation.tokenizer_folders import byte_level_folder

OPTIONS = LoadOptions(threads=1, device="cpu")


def test_changed_hardware_is_told_until_there_is_a_fitting_calibration(
    make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    model = make_model(seed=5, vocab_size=410)
    byte_level_folder(model.path)
    with Engine.load(model.path, OPTIONS) as engine:
        assert engine.status().stale_calibration == ""  # nothing was ever measured
        machine = {**engine.hardware.fingerprint_parts(1), "processor": "A slower one"}
        shape = (engine.info.config.num_layers, engine.info.config.num_experts)
        latency = LatencyModel(Curve.fit([(1, 1e-3), (2, 1.5e-3)]), 1e-3)
        info = engine.info
        elsewhere = Profile(
            info.name, machine, model_parts(info), "2026-01-01", 8, latency, np.ones(shape), (), 0, 0.1, 0.1
        )
    save_profile(elsewhere)
    with Engine.load(model.path, OPTIONS) as engine:
        assert "A slower one" in engine.status().stale_calibration
        assert not engine.status().calibrated
        engine.use_profile(elsewhere)  # as a calibration does at its end
        assert engine.status().stale_calibration == ""


def test_a_calibration_in_another_precision_is_told_and_used_again_after_changing_back(
    make_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    model = make_model(seed=5, vocab_size=410)
    byte_level_folder(model.path)
    with Engine.load(model.path, OPTIONS) as engine:
        assert engine.status().precision == "bf16"
        info, machine = engine.info, engine.hardware.fingerprint_parts(1)
    shape = (info.config.num_layers, info.config.num_experts)
    latency = LatencyModel(Curve.fit([(1, 1e-3), (2, 1.5e-3)]), 1e-3)
    save_profile(
        Profile(
            info.name, machine, model_parts(info), "2026-01-01", 1, latency, np.ones(shape), (), 0, 0.1, 0.1
        )
    )
    with Engine.load(model.path, replace(OPTIONS, precision="int4")) as engine:
        status = engine.status()
        assert status.precision == "int4"
        assert not status.calibrated
        assert "in bf16, and they are in 4 bits now" in status.stale_calibration
    with Engine.load(model.path, OPTIONS) as engine:
        assert engine.status().calibrated
