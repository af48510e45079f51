"""Durations, amounts and the line under a progress bar."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from app.widgets.amounts import amount, duration, progress_details
from app.widgets.rate import RateMeter
from engine.progress import Progress


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "a few seconds"),
        (12, "10 seconds"),
        (89, "90 seconds"),
        (95, "about 2 minutes"),
        (60 * 59, "about 59 minutes"),
        (60 * 59.7, "about 1 h"),
        (60 * 62, "about 1 h"),
        (60 * 63, "about 1 h 5 min"),
        (3600 * 2, "about 2 h"),
        (60 * 119, "about 2 h"),
        (3600 * 30 + 600, "about 30 h 10 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(0, 1e7))
def test_duration_never_says_sixty_minutes(seconds: float) -> None:
    assert "60 min" not in duration(seconds)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2**30, "B", "1.0 GiB"), (3, "layers", "3 layers"), (2.5, "MB", "2.5 MB"), (7, "", "7")],
)
def test_amount(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


def test_details_of_a_download() -> None:
    text = progress_details(Progress("x", 2**30, 4 * 2**30, "B"), 10 * 2**20, 314)
    assert text == "1.0 GiB of 4.0 GiB · 10.0 MiB per second · about 5 minutes left"


def test_details_of_layers() -> None:
    assert progress_details(Progress("x", 3, 30, "layers"), 1, None) == "3 of 30 layers"
    assert progress_details(Progress("x", 8.9, 10, "probes"), None, None) == "8 of 10 probes"


def test_details_without_a_unit_name_only_the_time() -> None:
    assert progress_details(Progress("x", 1, 3), None, 8) == "10 seconds left"
    assert progress_details(Progress("x", 1, 3), None, None) == ""


def test_details_without_a_total() -> None:
    assert progress_details(Progress("x", 2**20, 0, "B"), None, None) == "1.0 MiB"


@given(st.floats(1, 1e9), st.integers(3, 60))
def test_a_steady_rate_is_found(rate: float, seconds: int) -> None:
    meter = RateMeter()
    total = rate * 100
    for now in range(seconds + 1):
        meter.add(Progress("x", rate * now, total, "B"), float(now))
    assert meter.rate == pytest.approx(rate)
    assert meter.seconds_left == pytest.approx(100 - seconds, abs=1e-6)


def test_the_rate_follows_the_last_seconds() -> None:
    meter = RateMeter()
    done = 0.0
    for now in range(100):
        done += 1000 if now < 50 else 10
        meter.add(Progress("x", done, 1e6, "B"), float(now))
    assert meter.rate == pytest.approx(10)


def test_too_early_to_say() -> None:
    meter = RateMeter()
    assert meter.rate is None
    meter.add(Progress("x", 0, 100, "B"), 0.0)
    meter.add(Progress("x", 50, 100, "B"), 0.5)
    assert meter.rate is None
    assert meter.seconds_left is None


def test_a_stall_has_no_time_left() -> None:
    meter = RateMeter()
    for now in range(20):
        meter.add(Progress("x", 5, 100, "B"), float(now))
    assert meter.rate is None


@pytest.mark.parametrize("after", [Progress("y", 1, 50, "B"), Progress("x", 0, 100, "B")])
def test_another_file_or_a_restart_begins_afresh(after: Progress) -> None:
    meter = RateMeter()
    for now in range(10):
        meter.add(Progress("x", now, 100, "B"), float(now))
    assert meter.rate is not None
    meter.add(after, 10.0)
    assert meter.rate is None
