"""Two calibrations in words and figures."""

from __future__ import annotations

from dataclasses import replace

from app.calibrations import Row, compare, machine_text, moment_text, verdict
from tests.app.wizard_fakes import make_profile

FIRST = make_profile()
FASTER = replace(FIRST, measured_decode=FIRST.measured_decode / 1.25)


def row(rows: list[Row], name: str) -> Row:
    return next(each for each in rows if each.name == name)


def test_the_change_of_speed_is_told_from_the_second_ones_side() -> None:
    speed = row(compare(FIRST, FASTER), "Measured, tokens per second")
    assert (speed.first, speed.second, speed.change) == ("48.8", "61.0", "25% faster")
    assert row(compare(FASTER, FIRST), "Measured, tokens per second").change == "20% slower"
    assert verdict(FIRST, FASTER).startswith(
        "The second measured 61.0 tokens per second, the first 48.8: 25%"
    )


def test_large_changes_are_factors_and_small_ones_none() -> None:
    tripled = replace(FIRST, measured_decode=FIRST.measured_decode / 3)
    assert row(compare(FIRST, tripled), "Measured, tokens per second").change == "3.0 times faster"
    nearly = replace(FIRST, measured_decode=FIRST.measured_decode * 1.01)
    assert row(compare(FIRST, nearly), "Measured, tokens per second").change == "about the same"


def test_what_only_one_of_them_measured() -> None:
    rows = compare(FIRST, make_profile(gpu=True))
    copying = row(rows, "Copying one expert to the graphics card")
    assert (copying.first, copying.second, copying.change) == ("not measured", "14.00 ms", "")
    names = [each.name for each in compare(FIRST, FIRST)]
    assert "Copying one expert to the graphics card" not in names


def test_another_computer_or_model_is_said() -> None:
    moved = replace(FIRST, hardware={"processor": "another"})
    assert row(compare(FIRST, moved), "Processor").change == "changed"
    assert "The computer was not the same" in verdict(FIRST, moved)
    assert "different models" in verdict(FIRST, replace(FIRST, model={"name": "other"}))
    assert "another precision" in verdict(FIRST, replace(FIRST, precision="int4"))
    assert machine_text(FIRST) == "processor: any"


def test_a_doubtful_one_is_said() -> None:
    disturbed = replace(FIRST, measured_decode=FIRST.measured_decode * 2)
    assert "disturbed the second" in verdict(FIRST, disturbed)


def test_a_date_that_is_none_is_shown_as_it_is() -> None:
    assert moment_text("long ago") == "long ago"
    assert "2026" in moment_text(FIRST.created, long=True)
