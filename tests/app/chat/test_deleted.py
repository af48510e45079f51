"""The list of what was deleted, and what is done with its entries."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.chat.deleted import DeletedDialog
from app.dialogs import MessageDialog
from app.storage import ChatStore
from app.storage.thread import StorageThread
from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def kept(qtbot: QtBot, window: MainWindow, storage: StorageThread) -> int:
    """A chat that lacks a turn, beside a deleted one."""

    def save(store: ChatStore) -> int:
        chat = store.create_conversation("Rome").id
        first = store.add_message(chat, "user", "When was\nRome founded?")
        store.add_message(chat, "assistant", "In 753 BC.")
        store.add_message(chat, "user", "And Paris?")
        gone = store.create_conversation("Oslo").id
        store.add_message(gone, "user", "And Oslo?")
        store.delete(gone)
        store.delete_turn(first.id)
        return chat

    saved: list[int] = []
    storage.run(save).then(saved.append)
    window.chats.refresh()
    qtbot.waitUntil(lambda: listed(window) == ["Rome"], timeout=5000)
    return saved[0]


def listed(window: MainWindow) -> list[str]:
    model = window.sidebar.model
    return [str(model.index(row).data()) for row in range(model.rowCount())]


def lines(dialog: DeletedDialog) -> list[tuple[str, str]]:
    found = [dialog.list.topLevelItem(row) for row in range(dialog.list.topLevelItemCount())]
    return [(item.text(0), item.text(1)) for item in found if item is not None]


@pytest.fixture
def dialog(qtbot: QtBot, window: MainWindow, kept: int) -> DeletedDialog:
    window.menus.actions["deleted"].trigger()
    shown = window.findChild(DeletedDialog)
    assert isinstance(shown, DeletedDialog)
    qtbot.waitUntil(lambda: len(lines(shown)) == 2, timeout=5000)
    return shown


def test_all_that_can_be_brought_back_is_listed(dialog: DeletedDialog) -> None:
    assert sorted(lines(dialog)) == [
        ("Oslo", "Chat, 1 message"),
        ("When was Rome founded?", "Question in “Rome”"),
    ]
    assert [entry.what for entry in dialog.selected()] == [lines(dialog)[0][0]]
    dialog.reject()


def test_everything_is_brought_back(
    qtbot: QtBot, window: MainWindow, dialog: DeletedDialog, kept: int
) -> None:
    dialog.list.selectAll()
    dialog.restore.click()
    qtbot.waitUntil(lambda: lines(dialog) == [], timeout=5000)
    assert dialog.list.isHidden()
    assert dialog.nothing.isVisibleTo(dialog)
    assert not dialog.restore.isEnabled()
    qtbot.waitUntil(lambda: sorted(listed(window)) == ["Oslo", "Rome"], timeout=5000)
    dialog.reject()
    with qtbot.waitSignal(window.session.opened):
        window.session.open(kept)
    assert [row.content for row in window.session.messages] == [
        "When was\nRome founded?",
        "In 753 BC.",
        "And Paris?",
    ]


def test_enter_brings_back_a_turn_in_the_chat_that_is_shown(
    qtbot: QtBot, window: MainWindow, dialog: DeletedDialog, kept: int
) -> None:
    with qtbot.waitSignal(window.session.opened):
        window.session.open(kept)
    row = [text for text, _ in lines(dialog)].index("When was Rome founded?")
    dialog.list.setCurrentItem(dialog.list.topLevelItem(row))
    qtbot.keyClick(dialog.list, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(window.session.messages) == 3, timeout=5000)
    qtbot.waitUntil(lambda: lines(dialog) == [("Oslo", "Chat, 1 message")], timeout=5000)
    dialog.reject()


def test_for_good_asks_first(
    qtbot: QtBot, window: MainWindow, dialog: DeletedDialog, storage: StorageThread
) -> None:
    dialog.list.selectAll()
    for answer in ("Cancel", "Remove for good"):
        qtbot.keyClick(dialog.list, Qt.Key.Key_Delete)
        question = dialog.findChild(MessageDialog)
        assert isinstance(question, MessageDialog)
        assert question.accessibleName() == "Remove these 2 entries for good?"
        (button,) = [one for one in question.findChildren(QPushButton) if one.text() == answer]
        button.click()
        qtbot.waitUntil(lambda: dialog.findChild(MessageDialog) is None, timeout=5000)
    qtbot.waitUntil(lambda: lines(dialog) == [], timeout=5000)
    assert listed(window) == ["Rome"]
    found: list[tuple[list[object], list[object]]] = []
    storage.run(ChatStore.deleted).then(lambda read: found.append((list(read[0]), list(read[1]))))
    qtbot.waitUntil(lambda: found == [([], [])], timeout=5000)
    dialog.reject()
