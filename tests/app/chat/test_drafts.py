"""What is typed but not sent, where chats are opened faster than drafts are read."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.chat.welcome import SUGGESTIONS
from app.paths import database_path
from app.storage import ChatStore, StorageError, open_store
from app.storage.thread import StorageThread
from app.window import MainWindow
from tests.app.chat.hands import ask, press, read, write

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def test_a_chat_that_is_opened_twice_has_its_draft_once(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    read(qtbot, storage, ChatStore.draft, None)
    write(qtbot, window, "draft")
    window.commands.new_chat()
    window.commands.new_chat()
    assert read(qtbot, storage, ChatStore.draft, None) == "draft"
    assert window.page.composer.text == "draft"


def test_what_is_typed_while_a_draft_is_read_does_not_take_its_place(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    ask(qtbot, window)
    chat = window.session.conversation
    assert chat is not None
    write(qtbot, window, "a long draft")
    window.commands.new_chat()
    read(qtbot, storage, ChatStore.draft, None)

    left: list[bool] = []

    def type_and_leave(*_: object) -> None:
        window.session.opened.disconnect(type_and_leave)
        window.page.composer.edit.insertPlainText("x")
        window.commands.new_chat()
        left.append(True)

    window.session.opened.connect(type_and_leave)
    window.session.open(chat.id)
    qtbot.waitUntil(lambda: bool(left), timeout=5000)
    assert read(qtbot, storage, ChatStore.draft, chat.id) == "a long draft\nx"


def test_what_is_typed_while_a_draft_is_read_is_kept_when_the_program_ends(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    read(qtbot, storage, ChatStore.draft, None)
    write(qtbot, window, "a long draft")
    window.commands.new_chat()  # the draft is read once more
    write(qtbot, window, "x")
    window.close()
    assert open_store(database_path()).store.draft(None) == "a long draft\nx"


def test_a_draft_that_cannot_be_read_leaves_what_is_typed(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StorageError("The draft could not be read.", why="The disk is broken.")

    read(qtbot, storage, ChatStore.draft, None)
    monkeypatch.setattr(ChatStore, "take_back_next", broken)
    with qtbot.waitSignal(storage.failed):
        window.commands.new_chat()
        write(qtbot, window, "words")
    write(qtbot, window, " and more")
    assert read(qtbot, storage, ChatStore.draft, None) == "words and more"


def test_what_is_typed_while_a_chat_begins_is_that_chats_alone(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    read(qtbot, storage, ChatStore.draft, None)
    write(qtbot, window, "First")
    press(qtbot, window)
    assert window.session.conversation is None  # it is still being saved
    write(qtbot, window, "more")
    qtbot.waitUntil(lambda: window.session.conversation is not None, timeout=5000)
    chat = window.session.conversation
    assert chat is not None
    assert read(qtbot, storage, ChatStore.draft, chat.id) == "more"
    assert read(qtbot, storage, ChatStore.draft, None) == ""


def test_a_suggestion_leaves_what_is_written(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    first, second = window.page.welcome.buttons[:2]
    first.click()
    second.click()
    assert composer.text == SUGGESTIONS[1]  # looking at several writes nothing
    composer.set_text("my own words")
    first.click()
    assert composer.text == f"my own words\n{SUGGESTIONS[0]}"
