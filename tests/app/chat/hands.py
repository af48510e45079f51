"""Hands to use the window with, for its tests."""

from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.message import AssistantMessage
from app.window import MainWindow


def write(qtbot: QtBot, window: MainWindow, text: str) -> None:
    qtbot.keyClicks(window.page.composer.edit, text)


def press(qtbot: QtBot, window: MainWindow, key: Qt.Key = Qt.Key.Key_Return) -> None:
    qtbot.keyClick(window.page.composer.edit, key)


def ask(qtbot: QtBot, window: MainWindow, text: str = "Hello") -> None:
    write(qtbot, window, text)
    press(qtbot, window)
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)


def answer(window: MainWindow) -> AssistantMessage:
    last = window.page.view.views[-1]
    assert isinstance(last, AssistantMessage)
    return last


def listed(window: MainWindow) -> list[str]:
    model = window.sidebar.model
    return [str(model.index(row).data()) for row in range(model.rowCount())]
