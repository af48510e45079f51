from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CalibrationError
from engine.kernel_choice import KernelChoice
from engine.latency import Curve, LatencyModel
from engine.profile import Probe, ProbeKind, Profile
from kernels.formats import WeightFormat
from kernels.isa import Isa
from kernels.tuning import FormatTuning, Way
from tests.engine.costs import SERVER

PROBES = tuple(Probe(ProbeKind.CPU_EXPERT, count, 1e-3 * count, 0.05) for count in (1, 2, 4))


def profile(seed: int = 0) -> Profile:
    random = np.random.default_rng(seed)
    popularity = random.dirichlet(np.ones(8), size=4) * 2
    return Profile(
        model_name="Starter model",
        hardware={"processor": "Ryzen 9", "CPU threads": "8"},
        model={"name": "Starter model", "size": "0.8 GiB"},
        created="2026-01-02T03:04:05+00:00",
        threads=8,
        latency=LatencyModel(Curve.fit([(probe.tokens, probe.seconds) for probe in PROBES]), 2e-3),
        popularity=popularity,
        probes=PROBES,
        expert_slots=0,
        predicted_decode=0.011,
        measured_decode=0.010,
    )


@given(st.integers(0, 2**32))
def test_a_profile_comes_back_from_its_file(seed: int) -> None:
    before = profile(seed)
    after = Profile.from_json(before.to_json())
    np.testing.assert_allclose(after.popularity, before.popularity, atol=1e-6)
    same = replace(after, popularity=before.popularity)
    assert same.to_dict() == before.to_dict()
    assert same.latency == before.latency
    assert after.fingerprint == before.fingerprint


CHOICE = KernelChoice(
    Isa.AVX2,
    WeightFormat.INT4,
    FormatTuning(16, few_eight_bit=True, exact_tokens=1),
    panel_tokens=8,
    speedup=1.5,
    seconds={Way.EXPANDED: {1: 2e-3, 64: 1e-2}},
)


def test_the_kernels_come_back_and_are_told() -> None:
    before = replace(profile(), precision="int4", kernels=CHOICE, exact_activations=True)
    after = Profile.from_json(before.to_json())
    assert after.kernels == CHOICE
    assert after.exact_activations
    assert CHOICE.text() in before.summary()
    assert not any("Kernels" in line for line in profile().summary())


def test_a_prediction_that_is_far_off_is_told_and_doubted() -> None:
    slow = replace(profile(), predicted_decode=0.018, measured_decode=0.01)
    assert slow.summary()[0] == (
        "Predicted 55.6 tokens per second, measured 100.0: the time was predicted 80% too long."
    )
    assert "calibrate again" in slow.summary()[1]
    fast = replace(profile(), predicted_decode=0.009, measured_decode=0.01)
    assert fast.summary()[0].endswith("the time was predicted 10% too short.")
    assert not any("calibrate again" in line for line in fast.summary())


def test_files_from_before_there_was_a_choice_of_kernels_are_read() -> None:
    data = profile().to_dict()
    del data["kernels"], data["exact_activations"]
    after = Profile.from_json(json.dumps(data))
    assert after.kernels is None
    assert not after.exact_activations
    assert after.latency == profile().latency


def test_the_fit_error_and_the_prediction_error_are_in_the_file() -> None:
    data = json.loads(profile().to_json())
    assert data["fit_error"] == profile().latency.fit_error
    assert data["prediction_error"] == pytest.approx(0.1)
    assert data["predicted_decode"] == 0.011
    assert data["measured_decode"] == 0.010
    assert "Predicted 90.9 tokens per second, measured 100.0" in profile().summary()[0]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 3},
        {"popularity": [1, 2]},
        {"popularity": [[float("nan")]]},
        {"popularity": [[-0.1]]},
        {"measured_decode": 0},
        {"predicted_decode": "fast"},
        {"probes": [{"kind": "magic", "tokens": 1, "seconds": 1, "spread": 0}]},
        {"latency": None},
        {"hardware": "Ryzen"},
        {"kernels": {}},
        {"kernels": CHOICE.to_dict() | {"few_tokens": -1}},
        {"threads": float("inf")},
        {"measured_decode": 10**400},
    ],
)
def test_damaged_files_are_refused_with_reason_and_action(change: dict[str, Any]) -> None:
    data = profile().to_dict() | change
    with pytest.raises(CalibrationError) as caught:
        Profile.from_json(json.dumps(data))
    assert caught.value.why
    assert "Calibrate again" in caught.value.action


def test_a_file_of_nothing_but_brackets_is_refused() -> None:
    with pytest.raises(CalibrationError, match="cannot be read"):
        Profile.from_json("[" * 100_000)


def test_an_older_calibration_is_said_to_be_one() -> None:
    data = profile().to_dict() | {"version": 1}
    del data["latency"]["together"]
    with pytest.raises(CalibrationError, match="older version") as caught:
        Profile.from_json(json.dumps(data))
    assert "at the same time" in caught.value.why
    assert "Calibrate again" in caught.value.action


def test_the_summary_says_what_working_together_gains() -> None:
    together = replace(profile(), latency=SERVER)
    text = next(line for line in together.summary() if "together" in line)
    assert "the CPU takes 1.23 times as long and a copy 1.25 times" in text
    assert "1.23 times as much as the CPU alone" in text
    assert Profile.from_json(together.to_json()).latency == SERVER
    assert not any("together" in line for line in profile().summary())


@given(cut=st.integers(0, 2000), junk=st.text(max_size=20))
def test_truncated_or_overwritten_files_never_crash(cut: int, junk: str) -> None:
    text = profile().to_json()
    for damaged in (text[:cut], junk, text[:cut] + junk + text[cut + len(junk) :]):
        with suppress(CalibrationError):  # damage that keeps the JSON's meaning may pass
            Profile.from_json(damaged)


def test_probes_say_what_they_measured() -> None:
    assert PROBES[0].text() == "One expert on the CPU, 1 token: 1.00 ms"
    assert PROBES[1].name == "One expert on the CPU, 2 tokens"
    assert Probe(ProbeKind.WEIGHT_COPY, 0, 6.4e-3).text() == "Copying one expert to the GPU: 6.40 ms"
    assert all(Probe(kind, 1, 1.0).name for kind in ProbeKind)
