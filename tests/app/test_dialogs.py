"""The message boxes: what they say, what their buttons and keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QWidget

from app.dialogs import MessageDialog, ask_anyway, confirm, report, show_error
from app.errors import UnexpectedError
from app.widgets.breaking_text import BreakingText
from engine.errors import CheckpointError, EngineError, ShortageError

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark

ERROR = CheckpointError("The model cannot be read.", why="A file is cut short.", action="Download it again.")
SHORTAGE = ShortageError("3.2 GiB of memory are missing.", why="8 GiB needed.", action="Close programs.")


class Calls(list[str]):
    """Remembers that it was called."""

    def __call__(self) -> None:
        self.append("called")


@pytest.fixture
def parent(qtbot: QtBot) -> QWidget:
    widget = QWidget()
    qtbot.addWidget(widget)
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def texts(dialog: MessageDialog) -> list[str]:
    labels = [label.text() for label in dialog.findChildren(QLabel) if label.isVisible() and label.text()]
    return labels + [part.text for part in dialog.findChildren(BreakingText) if part.isVisible()]


def button(dialog: MessageDialog, text: str) -> QPushButton:
    return next(b for b in dialog.findChildren(QPushButton) if b.text().replace("&", "") == text)


def labels(dialog: MessageDialog) -> set[str]:
    return {b.text().replace("&", "") for b in dialog.findChildren(QPushButton)}


def press(dialog: MessageDialog, key: Qt.Key, qtbot: QtBot) -> None:
    qtbot.keyClick(QApplication.focusWidget() or dialog, key)


def test_an_error_is_what_why_and_what_to_do(parent: QWidget) -> None:
    dialog = show_error(parent, ERROR)
    assert texts(dialog) == [ERROR.what, ERROR.why, ERROR.action]
    assert labels(dialog) == {"Copy details", "Close"}
    assert dialog.accessibleName() == ERROR.what
    dialog.close()


def test_parts_without_words_take_no_room(parent: QWidget) -> None:
    dialog = show_error(parent, EngineError("Only this is known."))
    assert texts(dialog) == ["Only this is known."]
    dialog.close()


def test_details_are_copied_with_the_traceback_that_is_not_shown(parent: QWidget, qtbot: QtBot) -> None:
    try:
        raise ZeroDivisionError("a fault")
    except ZeroDivisionError as fault:
        error = UnexpectedError("The answer", fault)
    dialog = show_error(parent, error)
    assert not any("Traceback" in text for text in texts(dialog))
    qtbot.mouseClick(button(dialog, "Copy details"), Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    assert error.what in copied
    assert "ZeroDivisionError: a fault" in copied
    assert dialog.isVisible()
    dialog.close()


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
def test_an_error_is_closed_with_the_keyboard(parent: QWidget, qtbot: QtBot, key: Qt.Key) -> None:
    dialog = show_error(parent, ERROR)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
    with qtbot.waitSignal(dialog.finished):
        press(dialog, key, qtbot)


def test_retry(parent: QWidget, qtbot: QtBot) -> None:
    retries = Calls()
    dialog = show_error(parent, ERROR, retry=retries)
    with qtbot.waitSignal(dialog.finished):
        qtbot.mouseClick(button(dialog, "Try again"), Qt.MouseButton.LeftButton)
    assert len(retries) == 1


def test_closing_is_not_retrying(parent: QWidget, qtbot: QtBot) -> None:
    retries = Calls()
    dialog = show_error(parent, ERROR, retry=retries)
    qtbot.mouseClick(button(dialog, "Close"), Qt.MouseButton.LeftButton)
    assert retries == []


def test_a_shortage_can_be_overridden(parent: QWidget, qtbot: QtBot) -> None:
    went_on = Calls()
    dialog = ask_anyway(parent, SHORTAGE, went_on)
    assert SHORTAGE.what in texts(dialog)
    qtbot.mouseClick(button(dialog, "Do it anyway"), Qt.MouseButton.LeftButton)
    assert len(went_on) == 1


@pytest.mark.parametrize("key", [Qt.Key.Key_Escape, Qt.Key.Key_Return])
def test_keys_pressed_by_mistake_override_nothing(parent: QWidget, qtbot: QtBot, key: Qt.Key) -> None:
    went_on = Calls()
    dialog = ask_anyway(parent, SHORTAGE, went_on)
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
    with qtbot.waitSignal(dialog.finished):
        press(dialog, key, qtbot)
    assert went_on == []


@pytest.mark.parametrize(
    ("error", "anyway", "expected"),
    [(SHORTAGE, True, True), (SHORTAGE, False, False), (ERROR, True, False)],
)
def test_report_offers_anyway_only_for_a_shortage(
    parent: QWidget, error: EngineError, anyway: bool, expected: bool
) -> None:
    dialog = report(parent, error, anyway=Calls() if anyway else None)
    assert ("Do it anyway" in labels(dialog)) is expected
    dialog.close()


def test_confirm_names_the_action_and_enter_does_not_do_it(parent: QWidget, qtbot: QtBot) -> None:
    done = Calls()
    dialog = confirm(parent, "Delete all chats?", "They cannot be brought back.", "Delete", done)
    assert texts(dialog) == ["Delete all chats?", "They cannot be brought back."]
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
    with qtbot.waitSignal(dialog.finished):
        press(dialog, Qt.Key.Key_Return, qtbot)
    assert done == []
    dialog = confirm(parent, "Delete all chats?", "They cannot be brought back.", "Delete", done)
    qtbot.mouseClick(button(dialog, "Delete"), Qt.MouseButton.LeftButton)
    assert len(done) == 1


def test_markup_in_an_error_is_shown_as_it_is(parent: QWidget) -> None:
    dialog = show_error(parent, EngineError("<b>bold</b> & <img src=x>"))
    assert texts(dialog) == ["<b>bold</b> & <img src=x>"]
    dialog.close()
