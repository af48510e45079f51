"""What is typed into a message that is being edited stays, wherever the user goes meanwhile."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.editor import MessageEditor
from app.paths import database_path
from app.storage import ChatStore, open_store
from app.storage.thread import StorageThread
from app.window import MainWindow
from tests.app.chat.hands import open_long_chat

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def ask(qtbot: QtBot, window: MainWindow, text: str) -> int:
    """Have a question answered; the chat's id."""
    window.session.send(text)
    qtbot.waitUntil(lambda: not window.session.busy and bool(window.session.messages), timeout=5000)
    assert window.session.conversation is not None
    return window.session.conversation.id


def open_chat(qtbot: QtBot, window: MainWindow, chat: int) -> None:
    with qtbot.waitSignal(window.page.turns.edits_read):
        window.session.open(chat)


def editors(window: MainWindow) -> list[str]:
    """The texts that are being edited."""
    views = window.page.view.views
    return [view.editor.edit.toPlainText() for view in views if view.editor is not None]


def begin(qtbot: QtBot, window: MainWindow, place: int, text: str) -> MessageEditor:
    view = window.page.view.views[place]
    view.begin_edit()
    assert view.editor is not None
    qtbot.keyClicks(view.editor.edit, text)
    return view.editor


def kept(qtbot: QtBot, storage: StorageThread, chat: int) -> list[str]:
    """What the store has of the edits."""
    read: list[dict[int, str]] = []
    storage.flush()
    storage.run(ChatStore.edits, chat).then(read.append)
    qtbot.waitUntil(lambda: bool(read), timeout=5000)
    return list(read[0].values())


def test_edits_are_there_again_when_one_comes_back_to_the_chat(qtbot: QtBot, window: MainWindow) -> None:
    chat = ask(qtbot, window, "capital?")
    begin(qtbot, window, 0, " Please")
    begin(qtbot, window, 1, " Indeed.")
    window.session.new_chat()
    ask(qtbot, window, "other")
    assert editors(window) == []
    window.page.focus_composer()
    open_chat(qtbot, window, chat)
    assert editors(window) == ["capital? Please", "Paris is the capital. Indeed."]
    focused = window.focusWidget()
    assert focused is not None
    assert not isinstance(focused.parent(), MessageEditor)  # nobody is writing there now


def test_an_edit_is_kept_when_the_program_ends(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat = ask(qtbot, window, "capital?")
    begin(qtbot, window, 0, " Please")
    storage.close()
    store = open_store(database_path()).store
    assert list(store.edits(chat).values()) == ["capital? Please"]
    store.close()


def test_a_saved_edit_is_over(qtbot: QtBot, window: MainWindow, storage: StorageThread) -> None:
    chat = ask(qtbot, window, "capital?")
    editor = begin(qtbot, window, 0, " Please")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.session.messages[0].content == "capital? Please", timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    answer = begin(qtbot, window, 1, " Indeed.")
    qtbot.keyClick(answer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.session.messages[1].content.endswith("Indeed."), timeout=5000)
    assert kept(qtbot, storage, chat) == []
    open_chat(qtbot, window, chat)
    assert editors(window) == []


def test_a_cancelled_edit_is_over_and_an_unchanged_one_never_was(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat = ask(qtbot, window, "capital?")
    editor = begin(qtbot, window, 0, "x")
    assert kept(qtbot, storage, chat) == ["capital?x"]
    qtbot.keyClick(editor.edit, Qt.Key.Key_Backspace)
    assert kept(qtbot, storage, chat) == []
    qtbot.keyClicks(editor.edit, "y")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Escape)
    assert kept(qtbot, storage, chat) == []
    open_chat(qtbot, window, chat)
    assert editors(window) == []


def test_an_edit_stays_with_its_version(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "capital?")
    first = window.session.messages[1].id
    window.session.regenerate()
    qtbot.waitUntil(lambda: not window.session.busy and window.session.messages[1].id != first, timeout=5000)
    begin(qtbot, window, 1, " Indeed.")
    second = window.session.messages[1].id
    for message, expected in ((first, []), (second, ["Paris is the capital. Indeed."])):
        with qtbot.waitSignal(window.page.turns.edits_read):
            window.page.turns.act("show_version", message)
        assert window.session.messages[1].id == message
        assert editors(window) == expected


def test_a_change_that_was_given_up_can_be_had_back(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    chat = ask(qtbot, window, "capital?")
    undo = window.sidebar.undo
    editor = begin(qtbot, window, 0, "")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Escape)
    assert undo.isHidden()  # nothing was changed
    editor = begin(qtbot, window, 0, " A long change")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Escape)
    assert kept(qtbot, storage, chat) == []
    undo.button.click()
    qtbot.waitUntil(lambda: editors(window) == ["capital? A long change"], timeout=5000)
    assert kept(qtbot, storage, chat) == ["capital? A long change"]


def test_the_last_question_is_edited_though_an_early_one_is_shown(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    open_long_chat(qtbot, window, storage, exchanges=100)
    view = window.page.view
    view.reveal(window.session.messages[0].id)
    assert view.views[0].row.content == "Question 0"
    window.menus.actions["edit_last"].trigger()
    (edited,) = [shown for shown in view.views if shown.editor is not None]
    assert edited.row.content == "Question 99"
    assert edited.editor is not None
    edited.editor.cancelled.emit()
