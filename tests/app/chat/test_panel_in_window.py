"""The live panel in the window: it follows the chat that is shown and what is saved with each answer."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.panel.feed import Which
from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def ask(qtbot: QtBot, window: MainWindow, text: str) -> None:
    qtbot.keyClicks(window.page.composer.edit, text)
    qtbot.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)


def answers(window: MainWindow) -> int:
    return len(window.panel._feed.chat.answers)


def test_the_history_follows_the_chat_and_is_read_back(qtbot: QtBot, window: MainWindow) -> None:
    panel = window.panel
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    qtbot.waitUntil(lambda: answers(window) == 2)
    assert panel._feed.shown().which is Which.LAST
    assert panel.history.answers.isVisible()
    assert window.session.conversation is not None
    first = window.session.conversation.id
    window.session.new_chat()
    qtbot.waitUntil(lambda: answers(window) == 0)
    assert panel._feed.shown().which is Which.NONE
    window.session.open(first)
    qtbot.waitUntil(lambda: answers(window) == 2)
    chosen_most = panel.experts.map.grid.uses
    assert int(chosen_most.sum()) == 2 * 3 * 2 * 6  # answers, tokens, experts of a token, layers
    window.session.regenerate()
    qtbot.waitUntil(lambda: not window.session.busy and answers(window) == 2, timeout=5000)


def test_an_earlier_answer_is_looked_at_with_the_keyboard(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    qtbot.waitUntil(lambda: answers(window) == 2)
    plot = window.panel.history.answers
    plot.setFocus()
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    assert window.panel.speed.which.text().startswith("Answer 1 of 2, ")
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert window.panel.speed.which.text() == "The last answer"


def test_a_hidden_panel_catches_up_with_the_chat(qtbot: QtBot, window: MainWindow) -> None:
    window.program.toggle_panel()
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    assert answers(window) == 0
    window.program.toggle_panel()
    qtbot.waitUntil(lambda: answers(window) == 2)
