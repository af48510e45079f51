"""The legend of a bar in a wide and in a narrow panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel

from app.panel.bars import Ink
from app.panel.legend import Entry, LegendBar

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

ENTRIES = [
    Entry("Memory, for the CPU's experts", 0.6, "60%", "60% · 47 ms", Ink("cpu")),
    Entry("Copies to the graphics card", 0.4, "40%", "40% · 14 ms", Ink("streamed")),
]


@pytest.mark.parametrize(("characters", "beside"), [(60, True), (24, False)])
def test_figures_are_beside_the_name_or_below_it(qtbot: QtBot, characters: int, beside: bool) -> None:
    legend = LegendBar()
    qtbot.addWidget(legend)
    legend.set_entries(ENTRIES)
    width = legend.fontMetrics().averageCharWidth() * characters
    legend.resize(width, legend.heightForWidth(width))
    legend.show()
    labels = {label.text(): label for label in legend.findChildren(QLabel)}
    for entry in ENTRIES:
        name, figures = labels[entry.name], labels[entry.figures]
        place, below = (each.mapTo(legend, QPoint(0, 0)) for each in (name, figures))
        assert (place.y() == below.y()) is beside
        assert (place.x() == below.x()) is not beside
        assert name.height() >= name.heightForWidth(name.width())
        assert figures.width() >= figures.sizeHint().width()
        assert name.heightForWidth(name.width()) <= 2 * name.fontMetrics().lineSpacing()
