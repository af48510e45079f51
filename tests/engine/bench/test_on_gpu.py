"""Benchmarks on a real GPU: a small model within a budget, every policy, every bandwidth."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.bench.compare_points import Kind, Placing, Point, needed_context
from engine.bench.compare_run import CompareRun
from engine.bench.compare_store import CompareStore
from engine.bench.model_request import ModelRequest, Subject
from engine.bench.model_run import ModelRun
from engine.options import POLICIES, LoadOptions
from engine.units import GIB

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]


def subject(precision: str, context: int) -> Subject:
    options = LoadOptions(
        device="cuda", vram_budget=2 * GIB, context_length=context, precision=precision, force=True
    )
    return Subject(options=options, preset="starter", layers=8)


@pytest.mark.parametrize("precision", ["bf16", "int8", "int4"])
def test_a_model_is_measured_within_its_budget(precision: str) -> None:
    first = not torch.cuda.is_initialized()  # later there is a context already
    request = ModelRequest(subject(precision, 400), prompts=(16, 200), decode=8, repeats=1, soak=160)
    report = ModelRun(request).measure()
    rates, decode = report.rates, report.decode
    assert rates is not None
    assert decode is not None
    assert rates.gpu is not None
    assert rates.copy is not None
    assert rates.gpu > rates.copy > 1e9
    assert not any("calibrated" in note for note in report.notes)  # costs were measured
    assert report.model["kernels"] is not None
    assert report.memory["within_budget"], report.memory
    assert report.memory["gpu_context"] > 0 or not first
    assert report.soak is not None
    assert report.soak["gpu_growth"] == 0
    parts = report.accounting["parts_us"]
    assert sum(parts.values()) == pytest.approx(report.accounting["whole_us"], rel=0.05)


def test_every_policy_is_compared(tmp_path: Path) -> None:
    points = [
        point
        for policy in POLICIES
        for point in (
            Point(Kind.PROMPT, 32, policy),
            Point(Kind.DECODE, 32, policy, 8),
            Point(Kind.DECODE, 32, policy, 8, Placing.RANDOM),
            Point(Kind.BEAMS, 4, policy, 4),
        )
    ]
    asked = subject("bf16", needed_context())
    comparison = CompareRun(asked, lambda _: points, CompareStore(tmp_path / "compare.json")).measure()
    assert len(comparison.records) == len(points)
    for record in comparison.records.values():
        assert record.seconds > 0
