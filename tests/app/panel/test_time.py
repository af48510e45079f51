from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from app.panel.time_parts import ORDER, largest, time_parts, what_helps
from app.panel.time_section import _INKS, TimeSection
from engine.accounting import Part, TimeSplit
from tests.app.panel.splits import BUSY, split_of

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@given(st.lists(st.floats(0, 1e3), min_size=len(Part), max_size=len(Part)), st.integers(1, 1000))
def test_the_parts_add_up_and_keep_their_order(seconds: list[float], steps: int) -> None:
    split = TimeSplit(steps, sum(seconds), dict(zip(Part, seconds, strict=True)))
    parts = time_parts(split)
    assert sum(part.fraction for part in parts) == pytest.approx(1 if sum(seconds) > 0 else 0)
    assert sum(part.seconds for part in parts) == pytest.approx(split.whole / steps)
    places = [ORDER.index(part.part) for part in parts]
    assert places == sorted(places)


def test_the_largest_part_is_a_sentence_with_what_would_help() -> None:
    parts = time_parts(BUSY)
    assert largest(parts) == "71% waiting for memory to reach the CPU's experts."
    assert what_helps(parts).startswith("Fewer bits per weight")
    assert parts[0].figures == "71% · 0.7 s"
    assert largest(()) == what_helps(()) == ""
    assert what_helps(time_parts(split_of(python=1.0))) == ""


@pytest.mark.parametrize("part", Part)
def test_every_part_has_a_sentence_and_a_pattern_of_its_own(part: Part) -> None:
    (only,) = time_parts(split_of(**{part.value: 1.0}))
    assert largest((only,)).startswith("100% ")
    assert only.name
    patterns = [ink.pattern for ink in _INKS.values()]
    assert patterns.count(_INKS[part].pattern) == 1


def test_the_section_says_it_in_words_and_in_the_bar(qtbot: QtBot) -> None:
    section = TimeSection()
    qtbot.addWidget(section)
    section.resize(300, 300)
    section.show()
    assert not section.chart.isVisible()
    section.show_split(BUSY)
    assert section.sentence.text().startswith("71% waiting for memory")
    assert section.chart.isVisible()
    assert len(section.chart.texts) == 5
    assert "Attention, dense layers: 15%" in section.chart.bar.accessibleName()
    section.show_split(replace(BUSY, steps=0))
    assert section.sentence.text().startswith("Known after")
    section.show_split(TimeSplit(), ended=True)
    assert section.sentence.text() == "Not measured for this answer."
    assert section.chart.texts == []


@pytest.mark.parametrize("width", [60, 120, 200, 300, 500])
def test_labels_in_the_bar_stay_within_their_parts(qtbot: QtBot, width: int) -> None:
    section = TimeSection()
    qtbot.addWidget(section)
    section.show_split(BUSY)
    bar = section.chart.bar
    bar.resize(width, bar.sizeHint().height())
    boxes = bar.boxes()
    for text, chip in bar.labels():
        assert any(box.contains(chip) for box in boxes), text
    chips = [chip for _, chip in bar.labels()]
    assert not any(one.intersects(other) for one in chips for other in chips if one is not other)
    assert len(chips) >= (1 if width >= 120 else 0)
