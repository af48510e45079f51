"""The settings in a window as narrow as it can be, and the report that is shown from there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QPushButton, QScrollArea, QSpinBox, QWidget

from app.details import DetailsText
from app.preferences.dialog import PreferencesDialog
from app.theme import theme

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture(params=[100, 125])
def zoom(request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param
    theme().apply("light")
    QApplication.processEvents()


def wait_until_as_wide(qtbot: QtBot, page: QWidget, area: QScrollArea) -> None:
    """Until what was laid out anew has its size."""
    qtbot.waitUntil(lambda: page.width() == area.viewport().width())


def test_no_page_is_cut_off_where_the_window_is_narrow(
    qtbot: QtBot, dialog: PreferencesDialog, zoom: int
) -> None:
    before = dialog.minimumWidth()
    theme().apply("light", zoom=zoom)
    qtbot.waitUntil(lambda: zoom == 100 or dialog.minimumWidth() > before)
    for page in dialog.pages:
        dialog.show_page(page)
        QApplication.processEvents()
    dialog.resize(dialog.minimumSize())
    for page in dialog.pages:
        dialog.show_page(page)
        area = dialog.stack.currentWidget()
        assert isinstance(area, QScrollArea)
        wait_until_as_wide(qtbot, page, area)
        for part in page.findChildren(QWidget):
            if isinstance(part, QPushButton | QCheckBox | QLabel) and part.isVisible():
                right = part.mapTo(page, part.rect().topRight()).x()
                assert right < area.viewport().width(), f"{page.name}: {part.text()}"


def test_a_report_shows_whole_lines_of_its_usual_width(qtbot: QtBot) -> None:
    line = "x" * 84
    details = DetailsText("\n".join([line] * 60), "Report")
    qtbot.addWidget(details)
    details.show_columns(84, rows=18)
    details.resize(details.minimumSize())
    details.show()
    assert details.verticalScrollBar().maximum() > 0
    assert details.horizontalScrollBar().maximum() == 0
    assert details.minimumHeight() >= 18 * details.fontMetrics().height()


def test_a_report_is_never_larger_than_the_screen(qtbot: QtBot) -> None:
    details = DetailsText("x", "Report")
    qtbot.addWidget(details)
    details.show_columns(10_000, rows=10_000)
    room = details.screen().availableSize()
    assert details.minimumWidth() < room.width()
    assert details.minimumHeight() < room.height()
    assert details.horizontalScrollBarPolicy() is Qt.ScrollBarPolicy.ScrollBarAsNeeded


@pytest.mark.parametrize("name", ["contrast_dark", "light"])
def test_numbers_keep_away_from_their_frames(dialog: PreferencesDialog, zoom: int, name: str) -> None:
    box = dialog.appearance.editors["appearance.zoom"]
    assert isinstance(box, QSpinBox)
    theme().apply(name, zoom=zoom)
    QApplication.processEvents()
    assert box.lineEdit().textMargins().left() == round(7 * zoom / 100)
