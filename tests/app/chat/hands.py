"""Hands to use the window with, for its tests."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.message import AssistantMessage
from app.storage import ChatStore
from app.storage.thread import StorageThread
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


def read(qtbot: QtBot, storage: StorageThread, method: Any, *arguments: Any) -> Any:
    """What the store says after everything that was asked of it before."""
    storage.flush()
    results: list[Any] = []
    storage.run(method, *arguments).then(results.append)
    qtbot.waitUntil(lambda: bool(results), timeout=5000)
    return results[0]


def open_long_chat(qtbot: QtBot, window: MainWindow, storage: StorageThread, exchanges: int) -> None:
    def save(store: ChatStore) -> int:
        chat = store.create_conversation("Long").id
        for number in range(exchanges):
            store.add_message(chat, "user", f"Question {number}")
            store.add_message(chat, "assistant", "An answer.")
        return chat

    storage.run(save).then(window.session.open)
    qtbot.waitUntil(lambda: len(window.session.messages) == 2 * exchanges, timeout=5000)
