from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from engine.calibration.partial import PartialResult
from engine.kernel_choice import KernelChoice
from engine.profile import Probe, ProbeKind
from kernels.formats import WeightFormat
from kernels.isa import Isa
from kernels.tuning import FormatTuning

ONE = Probe(ProbeKind.CPU_EXPERT, 1, 1e-3, 0.1)
TWO = Probe(ProbeKind.CPU_EXPERT, 2, 2e-3, 0.1)
CHOICE = KernelChoice(Isa.AVX2, WeightFormat.INT8, FormatTuning(2, many_eight_bit=True), 8, 1.5)
READ = Probe(ProbeKind.POPULARITY, 1, 1e-2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profiles" / "unfinished-a-b.json"


def test_every_finished_probe_is_kept_at_once(path: Path) -> None:
    PartialResult.load(path).add(ONE)
    partial = PartialResult.load(path)
    partial.add(TWO)
    table = np.asarray([[0.5, 1.5], [1.25, 0.75]])
    partial.add(READ, table)
    again = PartialResult.load(path)
    assert list(again.probes.values()) == [ONE, TWO, READ]
    assert again.probes[ProbeKind.CPU_EXPERT, 2] == TWO
    assert again.popularity is not None
    assert (again.popularity == table).all()
    again.remove()
    assert PartialResult.load(path).probes == {}
    again.remove()  # twice is harmless


@pytest.mark.parametrize(("minutes", "kept"), [(0, True), (59, True), (61, False), (-5, False)])
def test_old_measurements_and_those_of_the_future_are_not_used(path: Path, minutes: int, kept: bool) -> None:
    PartialResult.load(path).add(ONE)
    found = PartialResult.load(path, now=time.time() + 60 * minutes)
    assert bool(found.probes) is kept


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "3", "[" * 100_000),
        '{"saved": "x", "probes": [], "popularity": null}',
        '{"saved": 1' + 400 * "0" + ', "probes": [], "popularity": null, "kernels": null}',
    ],
)
def test_a_damaged_file_means_starting_over(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert PartialResult.load(path).probes == {}


def test_the_kernels_are_kept(path: Path) -> None:
    PartialResult.load(path).add(Probe(ProbeKind.KERNELS, 4, 1e-3), kernels=CHOICE)
    partial = PartialResult.load(path)
    assert partial.kernels == CHOICE
    partial.add(ONE)
    assert PartialResult.load(path).kernels == CHOICE


@pytest.mark.parametrize("kernels", [{}, [], "avx2"])
def test_damaged_kernels_mean_starting_over(path: Path, kernels: object) -> None:
    PartialResult.load(path).add(ONE)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"kernels": kernels}))
    assert PartialResult.load(path).probes == {}


def test_times_with_kernels_that_nobody_chose_mean_starting_over(path: Path) -> None:
    """A file of an earlier version."""
    PartialResult.load(path).add(ONE)
    data = json.loads(path.read_text())
    del data["kernels"]
    path.write_text(json.dumps(data))
    assert PartialResult.load(path).probes == {}


def test_a_probe_of_an_unknown_kind_means_starting_over(path: Path) -> None:
    PartialResult.load(path).add(ONE)
    data = json.loads(path.read_text())
    data["probes"][0]["kind"] = "magic"
    path.write_text(json.dumps(data))
    assert PartialResult.load(path).probes == {}
