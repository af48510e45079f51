"""The composer in the window: messages called back, the count of tokens, what does not fit, drafts."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.composer.composer import Composer, ComposerState
from app.composer.count import Counted
from app.composer.room import Room
from app.storage import ChatStore
from app.storage.thread import StorageThread
from app.theme import theme
from app.window import MainWindow
from tests.app.chat.composing import ask, attach, press
from tests.app.fakes import ScriptedFactory, make_status

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def test_up_and_down_call_messages_back_and_what_was_written(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    ask(qtbot, window, "First")
    ask(qtbot, window, "Second")
    qtbot.keyClicks(composer.edit, "half a sen")
    press(qtbot, window, Qt.Key.Key_Up)
    assert composer.text == "Second"
    press(qtbot, window, Qt.Key.Key_Up)
    assert composer.text == "First"
    press(qtbot, window, Qt.Key.Key_Up)
    assert composer.text == "First"
    press(qtbot, window, Qt.Key.Key_Down)
    press(qtbot, window, Qt.Key.Key_Down)
    assert composer.text == "half a sen"


def test_within_several_lines_up_and_down_move_the_caret(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    ask(qtbot, window, "First")
    composer.set_text("one\ntwo")
    press(qtbot, window, Qt.Key.Key_Up)
    assert (composer.text, composer.edit.textCursor().blockNumber()) == ("one\ntwo", 0)
    qtbot.keyClick(composer.edit, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    assert composer.text == "one\ntwo"
    composer.edit.moveCursor(composer.edit.textCursor().MoveOperation.Start)
    press(qtbot, window, Qt.Key.Key_Up)
    assert composer.text == "First"


def test_a_message_that_is_looked_at_is_no_draft(qtbot: QtBot, window: MainWindow) -> None:
    composer = window.page.composer
    ask(qtbot, window, "First")
    assert window.session.conversation is not None
    chat = window.session.conversation.id
    qtbot.keyClicks(composer.edit, "written")
    press(qtbot, window, Qt.Key.Key_Up)
    window.commands.new_chat()
    window.session.open(chat)
    qtbot.waitUntil(lambda: composer.text == "written", timeout=5000)
    press(qtbot, window, Qt.Key.Key_Up)
    press(qtbot, window)  # sent once more: what was written is back
    assert composer.text == "written"
    qtbot.waitUntil(lambda: len(window.session.messages) == 4, timeout=5000)
    assert window.session.messages[2].content == "First"


def test_tokens_are_counted_as_you_type_and_with_the_chat(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    composer = window.page.composer
    assert composer.token_text == ""
    qtbot.keyClicks(composer.edit, "one two")
    qtbot.waitUntil(lambda: composer.token_text == "5 of 512 tokens", timeout=5000)
    qtbot.keyClicks(composer.edit, " three")
    qtbot.waitUntil(lambda: composer.token_text == "6 of 512 tokens", timeout=5000)
    press(qtbot, window)
    qtbot.waitUntil(lambda: composer.token_text == "", timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    qtbot.keyClicks(composer.edit, "four")  # after 3 + 3, 4 + 3
    qtbot.waitUntil(lambda: composer.token_text == "17 of 512 tokens", timeout=5000)


def test_while_an_answer_is_written_the_context_is_as_full_as_the_engine_says(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    composer = window.page.composer
    qtbot.keyClicks(composer.edit, "one")
    press(qtbot, window)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    qtbot.keyClicks(composer.edit, "two three")
    qtbot.waitUntil(lambda: composer.token_text == "15 of 512 tokens", timeout=5000)  # 13 are there
    composer.set_text("")
    factory.gate.set()


def test_what_does_not_fit_is_not_sent(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, tmp_path: Path
) -> None:
    composer = window.page.composer
    attach(qtbot, window, tmp_path / "large.txt", "word " * 600)
    qtbot.waitUntil(lambda: composer.token_text.endswith("too long"), timeout=5000)
    assert "⚠" in composer.token_text
    press(qtbot, window)
    assert "Remove the file" in composer.notice.text
    assert not window.session.busy
    composer.files.row.chips[0].remove.click()
    assert composer.notice.text == ""
    ask(qtbot, window, "short")
    assert len(factory.engine.conversations) == 1


def test_another_model_counts_anew(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    composer = window.page.composer
    qtbot.keyClicks(composer.edit, "one two")
    qtbot.waitUntil(lambda: composer.token_text == "5 of 512 tokens", timeout=5000)
    factory.status = make_status(context_length=4096)
    window.model.load_saved()
    qtbot.waitUntil(lambda: composer.token_text == "5 of 4,096 tokens", timeout=5000)


def test_a_long_message_is_counted_before_it_is_sent(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    composer = window.page.composer
    composer.set_text("word " * 600)
    press(qtbot, window)  # before a pause in which it would have been counted
    qtbot.waitUntil(lambda: "too long" in composer.notice.text, timeout=5000)
    assert composer.text.startswith("word")
    composer.set_text("word " * 450)
    press(qtbot, window)
    qtbot.waitUntil(lambda: len(factory.engine.conversations) == 1, timeout=5000)
    assert composer.text == ""
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    composer.set_text("x" * 3000)
    press(qtbot, window)
    composer.set_text("changed meanwhile")
    qtbot.waitUntil(lambda: bool(composer.token_text), timeout=5000)
    assert len(factory.engine.conversations) == 1


def test_what_cannot_fit_does_not_wait(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    factory.gate = threading.Event()
    composer = window.page.composer
    qtbot.keyClicks(composer.edit, "one")
    press(qtbot, window)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    composer.set_text("word " * 600)
    qtbot.waitUntil(lambda: "too long" in composer.token_text, timeout=5000)
    press(qtbot, window)
    assert composer.waiting.isHidden()
    assert "too long" in composer.notice.text
    composer.set_text("")
    factory.gate.set()


def test_what_is_typed_while_a_draft_is_read_is_added_to_it(
    qtbot: QtBot, window: MainWindow, storage: StorageThread
) -> None:
    composer = window.page.composer
    ask(qtbot, window, "First")
    assert window.session.conversation is not None
    chat = window.session.conversation.id
    qtbot.keyClicks(composer.edit, "draft")
    window.commands.new_chat()
    window.session.opened.connect(lambda *_: composer.edit.insertPlainText("typed"))
    window.session.open(chat)
    qtbot.waitUntil(lambda: composer.text == "draft\ntyped", timeout=5000)
    drafts: list[str] = []
    storage.flush()
    storage.run(ChatStore.draft, chat).then(drafts.append)
    qtbot.waitUntil(lambda: drafts == ["draft\ntyped"], timeout=5000)


def test_in_a_narrow_composer_the_count_has_the_room_of_the_hint(qtbot: QtBot) -> None:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.set_state(ComposerState.READY)
    composer.resize(700, 150)
    composer.show()
    composer.show_count(Counted("x", Room(300_000, 0, 46, 4096)))
    assert composer._hint.isVisible()
    composer.resize(310, 150)
    tokens = composer._tokens
    qtbot.waitUntil(lambda: composer._hint.isHidden())
    assert tokens.text() == "⚠ 300,046 of 4,096 tokens: too long"
    qtbot.waitUntil(lambda: tokens.height() >= tokens.heightForWidth(tokens.width()))
    composer.set_state(ComposerState.GENERATING)  # the hint says something else now: both are there
    qtbot.waitUntil(lambda: composer._hint.isVisible() and tokens.wordWrap())
    composer.set_state(ComposerState.READY)
    composer.show_count(None)
    assert composer._hint.isVisible()


def test_nothing_moves_when_the_field_gets_the_focus(qtbot: QtBot) -> None:
    theme().apply("light")
    composer = Composer()
    qtbot.addWidget(composer)
    composer.resize(500, composer.sizeHint().height())
    composer.show()
    before = composer.contentsRect(), composer.sizeHint()
    composer.edit.focus_changed.emit(True)
    assert composer.property("focused") is True
    assert (composer.contentsRect(), composer.sizeHint()) == before
    assert before[0] != composer.rect()
