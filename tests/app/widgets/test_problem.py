"""Errors that name files whose paths have no place to break."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.model_strip import ModelStrip
from app.dialogs import show_error
from app.theme import theme
from app.widgets.problem import ProblemBox, ProblemText
from engine.errors import CheckpointError

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

PATH = "/home/anna/" + "models_of_experts_" * 40
ERROR = CheckpointError(f"{PATH} cannot be read.", why=f"{PATH} is cut short.", action=f"Look at {PATH}.")


@pytest.fixture(autouse=True)
def zoom_of_others() -> Iterator[None]:
    yield
    theme().apply("light")


def page(qtbot: QtBot, part: QWidget, width: int) -> QWidget:
    """A window with a part on it, of this width if the part lets it be."""
    window = QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(part)
    column.addStretch()
    window.resize(width, 3000)
    window.show()
    return window


@pytest.mark.parametrize("zoom", [100, 150])
def test_a_long_path_makes_no_window_wider(qtbot: QtBot, zoom: int) -> None:
    theme().apply("light", zoom=zoom)
    strip, box = ModelStrip(), ProblemBox()
    strip.show_error(ERROR)
    box.show_problem(ERROR)
    width = 4 * zoom
    for part, text in ((strip, strip.problem), (box, box.text)):
        window = page(qtbot, part, width)
        qtbot.waitUntil(lambda part=part: part.width() == width)  # type: ignore[misc]
        assert window.width() == width
        for line in (text.what, text.why, text.action):
            qtbot.waitUntil(lambda line=line: line.height() >= line.heightForWidth(line.width()))  # type: ignore[misc]


@pytest.mark.parametrize("zoom", [100, 150, 200])
def test_a_message_box_is_as_wide_as_ever_and_shows_all_of_it(qtbot: QtBot, zoom: int) -> None:
    theme().apply("light", zoom=zoom)
    parent = page(qtbot, QWidget(), 300)
    short = show_error(parent, CheckpointError("It cannot be read."))
    long = show_error(parent, ERROR)
    assert long.width() == short.width()
    [text] = long.findChildren(ProblemText)
    for line in (text.what, text.why, text.action):
        assert line.height() >= line.heightForWidth(line.width())
    short.close()
    long.close()


def test_all_of_it_can_be_selected_copied_and_read_aloud(qtbot: QtBot) -> None:
    box = ProblemBox()
    window = page(qtbot, box, 300)
    box.show_problem(ERROR)
    assert window.isVisible()
    box.text.why.selectAll()
    box.text.why.copy()
    assert QApplication.clipboard().text() == ERROR.why
    spoken = QAccessible.queryAccessibleInterface(box.text.why)
    assert spoken is not None
    assert spoken.textInterface().text(0, len(ERROR.why)) == ERROR.why
    box.copy.click()
    assert QApplication.clipboard().text().count(PATH) == 3
