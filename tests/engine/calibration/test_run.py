from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.calibration import calibrate, kernels, probes
from engine.calibration.partial import PartialResult
from engine.calibration.probes import TOKEN_COUNTS
from engine.calibration.run import fit
from engine.errors import CalibrationError, Cancelled, EngineError, FileError
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import place_uniform
from engine.profile import Probe, ProbeKind
from engine.profile_store import ProfileState, file_name, find_profile, model_parts
from engine.progress import CancelToken, Progress
from engine.runtime import Engine
from kernels.tuning_probe import measure_tuning
from tests.engine.calibration.one_model import MACHINE, OneModel, add_tokenizer


@pytest.fixture
def engine(make_model: Callable[..., Any]) -> Iterator[OneModel]:
    model = make_model(vocab_size=256, num_hidden_layers=2)
    add_tokenizer(model.path)
    options = LoadOptions(threads=1, device="cpu")
    parts = load_model(model.path, options)
    yield OneModel(parts, options)
    parts.close()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are chosen with real clocks, only with less patience."""
    monkeypatch.setattr(kernels, "measure_tuning", partial(measure_tuning, seconds=1e-3))


def names(shown: list[Probe]) -> list[tuple[ProbeKind, int]]:
    return [(probe.kind, probe.tokens) for probe in shown]


KERNELS = (ProbeKind.KERNELS, 4)
CPU_PROBES = [(ProbeKind.CPU_EXPERT, tokens) for tokens in TOKEN_COUNTS]
ALL_PROBES = [
    KERNELS,
    *CPU_PROBES,
    (ProbeKind.OTHER_DECODE, 1),
    (ProbeKind.POPULARITY, 1),
    (ProbeKind.DECODE, 1),
]


def test_without_a_gpu_only_the_cpu_is_measured_and_the_profile_is_found_again(
    engine: OneModel, folder: Path, taken: list[Any]
) -> None:
    shown: list[Probe] = []
    steps: list[Progress] = []
    profile = calibrate(engine, progress=steps.append, on_probe=shown.append, folder=folder)
    assert names(shown) == ALL_PROBES
    assert not profile.latency.has_gpu
    assert profile.expert_slots == 0
    assert engine.profile is profile
    # 2 layers × 2 experts of a millisecond each, and a millisecond of everything else.
    assert profile.predicted_decode == pytest.approx(5e-3)
    assert profile.measured_decode == pytest.approx(1e-3)
    np.testing.assert_allclose(profile.popularity.sum(axis=1), 2)
    assert (profile.popularity != profile.popularity[:1, :1]).any()
    found = find_profile(MACHINE, engine.info, threads=1, folder=folder)
    assert found.state is ProfileState.VALID
    assert found.profile is not None
    assert found.profile.to_dict() == profile.to_dict()
    assert len(list(folder.glob("*.json"))) == 1  # nothing unfinished remains
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == steps[-1].total == len(ALL_PROBES)


@pytest.mark.parametrize("at", [0, 1, 4, 9, 10, 11, 12])
def test_a_cancelled_calibration_goes_on_where_it_stopped(
    engine: OneModel, folder: Path, taken: list[Any], at: int
) -> None:
    cancel, shown = CancelToken(), list[Probe]()

    def stop(probe: Probe) -> None:
        shown.append(probe)
        if len(shown) == at:
            cancel.cancel()

    if at == 0:
        cancel.cancel()
    with pytest.raises(Cancelled):
        calibrate(engine, cancel=cancel, on_probe=stop, folder=folder)
    assert names(shown) == ALL_PROBES[:at]
    assert engine.profile is None
    assert find_profile(MACHINE, engine.info, threads=1, folder=folder).state is ProfileState.MISSING
    before = len(taken)
    again: list[Probe] = []
    profile = calibrate(engine, on_probe=again.append, folder=folder)
    assert names(again) == ALL_PROBES
    assert again[:at] == shown
    assert before == min(max(at - 1, 0), len(CPU_PROBES) + 1)
    assert len(taken) == len(ALL_PROBES) - 2  # each measured once; kernels and popularity by other means
    assert find_profile(MACHINE, engine.info, threads=1, folder=folder).profile is not None
    assert profile.probes == tuple(again)


def test_another_machine_starts_over(engine: OneModel, folder: Path, taken: list[Any]) -> None:
    cancel = CancelToken()

    def stop_after_two(_: Probe) -> None:
        if taken:
            cancel.cancel()

    with pytest.raises(Cancelled):
        calibrate(engine, cancel=cancel, on_probe=stop_after_two, folder=folder)
    engine.hardware = replace(MACHINE, cpu=replace(MACHINE.cpu, name="Ryzen 7"))
    calibrate(engine, folder=folder)
    assert len(taken) == 1 + len(ALL_PROBES) - 2


def test_real_times_make_a_sound_profile(
    engine: OneModel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real clocks, only less patience."""
    monkeypatch.setattr(probes, "_PROBE_SECONDS", 0.02)
    monkeypatch.setattr(probes, "_DECODE_SECONDS", 0.02)
    profile = calibrate(engine, folder=folder)
    assert all(probe.seconds > 0 for probe in profile.probes)
    assert profile.predicted_decode > profile.latency.other_decode
    assert json.loads(profile.to_json())["fit_error"] >= 0


def test_a_disk_that_cannot_be_written_says_so(engine: OneModel, tmp_path: Path, taken: list[Any]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError) as caught:
        calibrate(engine, folder=tmp_path / "file")
    assert caught.value.action


def test_times_that_make_no_sense_are_not_taken_again(
    engine: OneModel, folder: Path, taken: list[Any]
) -> None:
    """Those of a cancelled calibration would be, for an hour, however often one is told to try again."""
    name = file_name(MACHINE.fingerprint_parts(1), model_parts(engine.info))
    kept = PartialResult.load(folder / f"unfinished-{name}")
    kept.add(Probe(ProbeKind.CPU_EXPERT, 1, -1e-3))
    with pytest.raises(CalibrationError):
        calibrate(engine, folder=folder)
    assert engine.profile is None
    assert calibrate(engine, folder=folder).latency.cpu_lat(1) == 1e-3


def test_what_was_measured_is_kept_although_the_engine_was_closed_meanwhile(
    make_model: Callable[..., Any], folder: Path, taken: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(folder))
    model = make_model(vocab_size=256)
    add_tokenizer(model.path)
    engine = Engine.load(model.path, LoadOptions(threads=1, device="cpu"))

    def close_at_the_last(probe: Probe) -> None:
        if probe.kind is ProbeKind.DECODE:
            engine.close()

    profile = calibrate(engine, on_probe=close_at_the_last, folder=folder)
    assert find_profile(engine.hardware, engine.info, threads=1, folder=folder).profile is not None
    assert engine.profile is profile
    with pytest.raises(EngineError, match="closed"):
        engine.status()


def test_a_simulated_placement_is_not_a_gpu(
    make_model: Callable[..., Any], folder: Path, taken: list[Any]
) -> None:
    model = make_model(vocab_size=256)
    add_tokenizer(model.path)
    placement = place_uniform(2, 4, 8)
    options = LoadOptions(threads=1, device="cpu")
    parts = load_model(model.path, options, placement, expert_device=torch.device("cpu"))
    profile = calibrate(OneModel(parts, options), folder=folder)
    parts.close()
    assert not profile.latency.has_gpu
    assert profile.expert_slots == 0
    assert profile.predicted_decode == pytest.approx(5e-3)


def test_probes_become_a_latency_model() -> None:
    taken = [
        Probe(ProbeKind.CPU_EXPERT, 1, 3e-3),
        Probe(ProbeKind.CPU_EXPERT, 64, 6e-3),
        Probe(ProbeKind.GPU_EXPERT, 1, 1e-4),
        Probe(ProbeKind.WEIGHT_COPY, 0, 7e-3),
        Probe(ProbeKind.ACTIVATION_COPY, 1, 3e-5),
        Probe(ProbeKind.OTHER_DECODE, 1, 4e-3),
        Probe(ProbeKind.COPY_START, 0, 4e-5),
        Probe(ProbeKind.CPU_START, 0, 2e-5),
        *(Probe(ProbeKind.CPU_ALONE, tokens, 2e-3 * tokens) for tokens in (1, 16)),
        *(Probe(ProbeKind.CPU_TOGETHER, tokens, 2.4e-3 * tokens) for tokens in (16, 1)),
        *(Probe(ProbeKind.COPY_TOGETHER, tokens, 9e-3 - tokens * 1e-4) for tokens in (1, 16)),
    ]
    latency = fit({(probe.kind, probe.tokens): probe for probe in taken})
    assert latency.has_gpu
    assert latency.cpu_lat(1) == 3e-3
    assert (latency.transfer_lat(), latency.gpu_lat(1)) == (7e-3, 1e-4)
    assert latency.activation is not None
    assert latency.activation(1) == 3e-5
    assert latency.other_decode == 4e-3
    assert (latency.start_copy(), latency.start_cpu()) == (4e-5, 2e-5)
    assert latency.at_once(1) == pytest.approx((1.2, 8.9e-3))
    assert latency.at_once(300) == pytest.approx((1.2, 7.4e-3))
    with pytest.raises(CalibrationError):
        fit({})
