from __future__ import annotations

import logging

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.logs.lines import LastLines, Line
from app.logs.window import LogWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def lines() -> LastLines:
    made = LastLines()
    made.add([Line(logging.INFO, "it starts"), Line(logging.ERROR, "it fails\n  at a place")])
    return made


@pytest.fixture
def opened() -> list[str]:
    return []


@pytest.fixture
def log_window(qtbot: QtBot, lines: LastLines, opened: list[str]) -> LogWindow:
    made = LogWindow(lines, lambda: opened.append("folder"), None)
    qtbot.addWidget(made)
    made.show()
    return made


def test_lines_appear_as_they_are_logged(qtbot: QtBot, log_window: LogWindow, lines: LastLines) -> None:
    assert log_window.text.toPlainText() == "it starts\nit fails\n  at a place"
    lines.add([Line(logging.WARNING, "it goes on")])
    qtbot.waitUntil(lambda: log_window.text.toPlainText().endswith("it goes on"), timeout=5000)


def test_a_level_leaves_out_what_is_below(qtbot: QtBot, log_window: LogWindow, lines: LastLines) -> None:
    log_window.level.setCurrentIndex(2)
    assert log_window.text.toPlainText() == "it fails\n  at a place"
    lines.add([Line(logging.WARNING, "not wanted"), Line(logging.ERROR, "again")])
    qtbot.waitUntil(lambda: log_window.text.toPlainText().endswith("again"), timeout=5000)
    assert "not wanted" not in log_window.text.toPlainText()


def test_nothing_is_looked_at_while_it_is_hidden(
    qtbot: QtBot, log_window: LogWindow, lines: LastLines
) -> None:
    log_window.hide()
    assert not log_window._timer.isActive()
    lines.add([Line(logging.INFO, "meanwhile")])
    log_window.show()
    assert log_window.text.toPlainText().endswith("meanwhile")


def test_what_is_shown_is_copied(log_window: LogWindow) -> None:
    log_window.copy.click()
    assert QGuiApplication.clipboard().text() == "it starts\nit fails\n  at a place"


def test_a_reader_of_old_lines_is_not_moved(qtbot: QtBot, log_window: LogWindow, lines: LastLines) -> None:
    lines.add(Line(logging.INFO, f"line {number}") for number in range(500))
    qtbot.waitUntil(lambda: "line 499" in log_window.text.toPlainText(), timeout=5000)
    bar = log_window.text.verticalScrollBar()
    assert bar.value() == bar.maximum()
    log_window.follow.setChecked(False)
    bar.setValue(10)
    lines.add([Line(logging.INFO, "the last")])
    qtbot.waitUntil(lambda: log_window.text.toPlainText().endswith("the last"), timeout=5000)
    assert bar.value() == 10


def test_without_lines_it_says_so(qtbot: QtBot) -> None:
    empty = LogWindow(LastLines(), lambda: None, None)
    qtbot.addWidget(empty)
    empty.show()
    assert empty.status.text() == "There is no such line."
    assert not empty.copy.isEnabled()
