"""A message that is written while an answer comes: it waits, is sent, or comes back; it is never lost."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.attachments.form import Attachment, compose
from app.paths import database_path
from app.storage import ChatStore, MessageState, StorageError, open_store
from app.storage.thread import StorageThread
from app.window import MainWindow
from engine.events import FinishReason
from tests.app.chat.hands import read
from tests.app.fakes import ScriptedFactory, shortage

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def enter(qtbot: QtBot, window: MainWindow, text: str) -> None:
    qtbot.keyClicks(window.page.composer.edit, text)
    qtbot.keyClick(window.page.composer.edit, Qt.Key.Key_Return)


def begin(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, text: str = "First") -> int:
    """Ask, and let the answer stand still after its first piece; the chat's id."""
    factory.gate, factory.emitted = threading.Event(), 0
    enter(qtbot, window, text)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    assert window.session.conversation is not None
    return window.session.conversation.id


def finish(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, asked: int) -> None:
    """Let answers come, until so many have been asked for and none is written any more."""
    assert factory.gate is not None
    factory.gate.set()
    conversations = factory.engine.conversations
    qtbot.waitUntil(lambda: len(conversations) == asked and not window.session.busy, timeout=5000)


def asked(factory: ScriptedFactory) -> list[str]:
    return [messages[-1].content for messages in factory.engine.conversations]


def test_a_message_waits_for_the_answer_and_follows_it(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory
) -> None:
    composer = window.page.composer
    chat = begin(qtbot, window, factory)
    assert composer.wait_button.isHidden()
    enter(qtbot, window, "Second")
    assert composer.text == ""
    assert composer.waiting.isVisible()
    assert composer.waiting.text.text() == "Next: Second"
    assert read(qtbot, storage, ChatStore.next_message, chat) == "Second"
    finish(qtbot, window, factory, 2)
    assert asked(factory) == ["First", "Second"]
    assert [row.content for row in window.session.messages if row.role == "user"] == ["First", "Second"]
    assert composer.waiting.isHidden()
    assert read(qtbot, storage, ChatStore.next_message, chat) == ""


def test_screen_readers_hear_that_it_waits_and_why_another_does_not(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("app.composer.composer.announce", lambda _owner, text: said.append(text))
    begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    enter(qtbot, window, "Third")
    assert said == ["Next: Second", "One message waits already. Edit or remove that one first."]
    finish(qtbot, window, factory, 2)


def test_the_button_lets_it_wait_too_and_there_is_one_at_most(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    composer = window.page.composer
    begin(qtbot, window, factory)
    qtbot.keyClicks(composer.edit, "Second")
    assert composer.wait_button.isVisible()
    assert "when the answer has ended" in composer.hint
    composer.wait_button.click()
    enter(qtbot, window, "Third")
    assert composer.text == "Third"  # stays where it is
    assert "waits already" in composer.notice.text
    finish(qtbot, window, factory, 2)
    assert asked(factory) == ["First", "Second"]
    assert composer.text == "Third"


@pytest.mark.parametrize("end", ["stopped", "failed", "full"])
def test_after_an_answer_that_was_stopped_or_failed_it_comes_back(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory, end: str
) -> None:
    composer = window.page.composer
    if end == "failed":
        factory.script = ["Paris ", shortage()]
    elif end == "full":
        factory.reason = FinishReason.CONTEXT_FULL
    chat = begin(qtbot, window, factory)
    note = Attachment("note.txt", "words")
    composer.set_content(compose([note], "Second"))
    qtbot.keyClick(composer.edit, Qt.Key.Key_Return)
    qtbot.keyClicks(composer.edit, "and more")
    if end == "stopped":
        window.session.stop()
    finish(qtbot, window, factory, 1)
    qtbot.waitUntil(lambda: composer.waiting.isHidden(), timeout=5000)
    assert composer.content == compose([note], "Second\nand more")
    assert read(qtbot, storage, ChatStore.draft, chat) == composer.content
    assert read(qtbot, storage, ChatStore.next_message, chat) == ""


def test_it_can_be_edited_and_removed_and_called_back(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory
) -> None:
    composer = window.page.composer
    chat = begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    composer.waiting.edit.click()
    assert (composer.text, composer.waiting.isHidden()) == ("Second", True)
    assert read(qtbot, storage, ChatStore.next_message, chat) == ""
    enter(qtbot, window, " thought")
    assert composer.waiting.text.text() == "Next: Second thought"
    composer.waiting.remove.click()
    assert composer.waiting.isHidden()
    assert read(qtbot, storage, ChatStore.next_message, chat) == ""
    qtbot.keyClick(composer.edit, Qt.Key.Key_Up)
    assert composer.text == "Second thought"
    finish(qtbot, window, factory, 1)


def test_it_follows_in_its_own_chat_though_another_is_shown(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory
) -> None:
    chat = begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    window.commands.new_chat()
    assert window.page.composer.waiting.isHidden()
    enter(qtbot, window, "Elsewhere")  # waits in the new chat
    assert window.page.composer.waiting.isVisible()
    finish(qtbot, window, factory, 3)
    assert asked(factory) == ["First", "Second", "Elsewhere"]
    rows = read(qtbot, storage, ChatStore.messages, chat)
    assert [row.content for row in rows if row.role == "user"] == ["First", "Second"]
    assert [row.content for row in window.session.messages if row.role == "user"] == ["Elsewhere"]
    assert window.session.conversation is not None
    assert window.session.conversation.id != chat
    assert read(qtbot, storage, ChatStore.next_message, None) == ""


def test_what_waits_is_there_again_when_its_chat_is_opened(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    chat = begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    window.commands.new_chat()
    window.session.open(chat)
    qtbot.waitUntil(lambda: window.page.composer.waiting.isVisible(), timeout=5000)
    window.session.stop()
    finish(qtbot, window, factory, 1)
    qtbot.waitUntil(lambda: window.page.composer.text == "Second", timeout=5000)


def test_a_message_on_its_way_is_not_taken_back_by_opening_its_chat(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory
) -> None:
    chat = begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    window.commands.new_chat()
    hold = threading.Event()
    storage.run(lambda _store: hold.wait(5))
    window.session.open(chat)  # is asked for before, and told after the message goes
    assert factory.gate is not None
    factory.gate.set()
    qtbot.waitUntil(lambda: not window.page.writing.waiting, timeout=5000)
    hold.set()
    finish(qtbot, window, factory, 2)
    assert asked(factory) == ["First", "Second"]
    assert read(qtbot, storage, ChatStore.draft, chat) == ""
    assert window.page.composer.text == ""


def test_a_message_that_cannot_be_saved_comes_back(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("Your message could not be saved.", why="The disk is full.", action="Free space.")

    begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    monkeypatch.setattr(ChatStore, "begin_exchange", full)
    with qtbot.waitSignal(window.session.failed):
        finish(qtbot, window, factory, 1)
    qtbot.waitUntil(lambda: window.page.composer.text == "Second", timeout=5000)
    assert window.page.composer.waiting.isHidden()


def test_closing_the_program_keeps_it_for_the_composer(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    chat = begin(qtbot, window, factory)
    enter(qtbot, window, "Second")
    qtbot.keyClicks(window.page.composer.edit, "and more")
    window.close()
    opened = open_store(database_path())
    assert opened.store.next_message(chat) == "Second"
    assert opened.store.take_back_next(chat) == "Second\nand more"
    assert opened.store.messages(chat)[-1].state is MessageState.STOPPED
    opened.store.close()
