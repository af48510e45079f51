from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CalibrationError
from engine.latency import Curve, LatencyModel, fit_line

COUNTS = (1, 2, 4, 8, 16, 32, 64)
TIMES = st.floats(1e-6, 10)


@st.composite
def points(draw: Any) -> list[tuple[int, float]]:
    counts = draw(st.lists(st.integers(1, 128), min_size=1, max_size=8, unique=True))
    return [(count, draw(TIMES)) for count in counts]


@given(intercept=st.floats(1e-5, 1), slope=st.floats(0, 1))
def test_a_line_is_found_exactly(intercept: float, slope: float) -> None:
    line = fit_line(COUNTS, [intercept + slope * count for count in COUNTS])
    assert line.error < 1e-6
    assert line(100) == pytest.approx(intercept + slope * 100, rel=1e-5)


@given(points())
def test_measured_points_are_kept_and_the_rest_lies_between(measured: list[tuple[int, float]]) -> None:
    curve = Curve.fit(measured)
    for count, time in measured:
        assert curve(count) == pytest.approx(time)
    ordered = sorted(measured)
    for (low, first), (high, second) in pairwise(ordered):
        middle = curve((low + high) / 2)
        assert min(first, second) * (1 - 1e-9) <= middle <= max(first, second) * (1 + 1e-9)


@given(points())
def test_beyond_the_measured_end_time_never_falls(measured: list[tuple[int, float]]) -> None:
    curve = Curve.fit(measured)
    end = max(count for count, _ in measured)
    assert curve(end) <= curve(end + 1) <= curve(10 * end + 1)
    assert curve.line.slope >= 0
    assert curve(0) == 0


@given(points())
def test_the_fit_minimises_relative_error(measured: list[tuple[int, float]]) -> None:
    """No nearby line with a legal slope has a smaller sum of squared relative residuals."""
    tokens, seconds = zip(*sorted(measured), strict=True)
    line, y, x = fit_line(tokens, seconds), np.asarray(seconds), np.asarray(tokens, dtype=np.float64)

    def loss(intercept: float, slope: float) -> float:
        return float((((intercept + slope * x) / y - 1) ** 2).sum())

    best = loss(line.intercept, line.slope)
    step = float(y.min())
    for change in (-0.01, 0.01):
        assert loss(line.intercept + change * step, line.slope) >= best - 1e-9 * (1 + best)
        if line.slope + change * step / x.max() >= 0:
            assert loss(line.intercept, line.slope + change * step / x.max()) >= best - 1e-9 * (1 + best)


def test_the_error_of_the_fit_is_reported() -> None:
    knee = [(1, 1.0), (2, 1.0), (4, 1.0), (8, 1.0), (16, 2.0), (32, 4.0), (64, 8.0)]
    error = Curve.fit(knee).line.error
    assert 0.05 < error < 0.5


@pytest.mark.parametrize("bad", [[], [(0, 1.0)], [(1, 0.0)], [(1, float("nan"))], [(2, 1.0), (2, 1.0)]])
def test_points_without_sense_are_refused(bad: list[tuple[int, float]]) -> None:
    with pytest.raises(CalibrationError):
        Curve.fit(bad)


def model(gpu: bool = True, transfer: float = 6.4e-3) -> LatencyModel:
    """A server: 3.3 ms on the CPU, 0.12 ms on the GPU, 6.4 ms to copy."""
    cpu = Curve.fit([(1, 3.3e-3), (16, 4.0e-3), (64, 5.8e-3), (256, 19.7e-3)])
    if not gpu:
        return LatencyModel(cpu, other_decode=4e-3)
    return LatencyModel(
        cpu, 4e-3, Curve.fit([(1, 0.12e-3), (64, 0.12e-3)]), transfer, Curve.fit([(1, 27e-6)])
    )


@given(st.booleans())
def test_plain_data_and_back(gpu: bool) -> None:
    latency = model(gpu)
    assert LatencyModel.from_dict(json.loads(json.dumps(latency.to_dict()))) == latency


@pytest.mark.parametrize("value", [None, 0, -1, float("nan"), "x"])
def test_damaged_data_is_refused(value: Any) -> None:
    data = model().to_dict()
    data["other_decode"] = value
    with pytest.raises((ValueError, TypeError)):
        LatencyModel.from_dict(data)
