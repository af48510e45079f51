from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit
from pytestqt.qtbot import QtBot

from app.composer.composer import ComposerState
from app.dialogs import MessageDialog
from app.settings import SettingsStore, registry
from app.storage import ChatStore, MessageState, StorageError
from app.storage.thread import StorageThread
from app.window import MainWindow
from engine.events import FinishReason
from tests.app.chat.hands import answer, ask, listed, press, write
from tests.app.fakes import ScriptedFactory, shortage

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark


def test_enter_sends_and_the_answer_streams_into_the_conversation(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    write(qtbot, window, "What is the capital of France?")
    press(qtbot, window)
    qtbot.waitUntil(lambda: len(window.page.view.views) == 2, timeout=5000)
    assert window.page.composer.text == ""
    assert window.page.composer.state is ComposerState.GENERATING
    qtbot.waitUntil(lambda: answer(window).content() == "Paris ", timeout=5000)
    factory.gate.set()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    assert answer(window).content() == "Paris is the capital."
    assert window.page.composer.state is ComposerState.READY
    assert window.windowTitle().startswith("What is the capital of France?")
    qtbot.waitUntil(lambda: listed(window) == ["What is the capital of France?"], timeout=5000)


def test_shift_enter_makes_a_line_and_ime_composition_does_not_send(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    from PySide6.QtGui import QInputMethodEvent

    edit = window.page.composer.edit
    write(qtbot, window, "one")
    qtbot.keyClick(edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    write(qtbot, window, "two")
    assert window.page.composer.text == "one\ntwo"
    QApplication.sendEvent(edit, QInputMethodEvent("にほ", []))
    press(qtbot, window)
    assert not window.session.busy
    commit = QInputMethodEvent("", [])
    commit.setCommitString("日本")
    QApplication.sendEvent(edit, commit)
    assert "日本" in window.page.composer.text
    press(qtbot, window)
    qtbot.waitUntil(lambda: bool(factory.engine.conversations), timeout=5000)
    assert "日本" in factory.engine.conversations[0][0].content


def test_where_enter_makes_a_line_ctrl_enter_sends(
    qtbot: QtBot, window: MainWindow, settings: SettingsStore
) -> None:
    settings.set(registry.SEND_ON_ENTER, False)
    write(qtbot, window, "one")
    press(qtbot, window)
    assert window.page.composer.text == "one\n"
    qtbot.keyClick(window.page.composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: len(window.page.view.views) == 2, timeout=5000)


def test_the_composer_grows_with_its_text_up_to_a_limit(qtbot: QtBot, window: MainWindow) -> None:
    edit = window.page.composer.edit
    heights = []
    for lines in (1, 3, 9, 40):
        window.page.composer.set_text("line\n" * (lines - 1) + "line")
        heights.append(edit.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]


def test_nothing_is_sent_when_there_is_nothing_to_say(qtbot: QtBot, window: MainWindow) -> None:
    write(qtbot, window, "   ")
    press(qtbot, window)
    assert not window.session.busy
    assert not window.page.composer.button.isEnabled()


def test_the_button_and_escape_stop_within_one_token(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    for stop in ("button", "escape"):
        factory.emitted = 0
        write(qtbot, window, "Hello")
        press(qtbot, window)
        qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
        if stop == "button":
            qtbot.mouseClick(window.page.composer.button, Qt.MouseButton.LeftButton)
        else:
            press(qtbot, window, Qt.Key.Key_Escape)
        qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
        assert answer(window).content() == "Paris "
        assert answer(window).row.state is MessageState.STOPPED
        assert "stopped" in answer(window).notice.text


def test_an_error_is_shown_at_its_message_with_a_way_out(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.script = [shortage()]
    ask(qtbot, window)
    notice = answer(window).notice
    assert "3.2 GB of RAM are missing" in notice.text
    assert notice.button.isVisible()
    factory.script = ["Better."]
    qtbot.mouseClick(notice.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: answer(window).content() == "Better.", timeout=5000)
    assert len(window.page.view.views) == 2
    assert answer(window).notice.text == ""


def test_a_full_context_offers_a_new_chat_and_loses_nothing(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.reason = FinishReason.CONTEXT_FULL
    factory.message = "The context is full."
    ask(qtbot, window)
    notice = answer(window).notice
    assert notice.text.startswith("The context is full.")
    qtbot.mouseClick(notice.button, Qt.MouseButton.LeftButton)
    assert window.session.conversation is None
    assert window.page.view.views == []
    qtbot.waitUntil(lambda: listed(window) == ["Hello"], timeout=5000)


def test_only_the_last_answer_offers_to_be_regenerated(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    redo = [
        button
        for button in window.page.view.findChildren(QAbstractButton)
        if button.accessibleName() == "Regenerate this answer" and button.isVisible()
    ]
    assert len(redo) == 1
    assert answer(window).isAncestorOf(redo[0])


def test_an_interrupted_answer_says_so(qtbot: QtBot, window: MainWindow, storage: StorageThread) -> None:
    def leave_behind(store: ChatStore) -> int:
        chat = store.create_conversation("Cut off")
        exchange = store.begin_exchange(chat.id, "Hello")
        store.finish_message(exchange.answer.id, "Half", MessageState.INTERRUPTED)
        return chat.id

    storage.run(leave_behind).then(window.session.open)
    qtbot.waitUntil(lambda: len(window.page.view.views) == 2, timeout=5000)
    assert "The program ended while this answer was being written" in answer(window).notice.text
    assert answer(window).notice.button.text() == "Continue"


def test_copying_an_answer_copies_its_source(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.script = ["Some **bold** text"]
    ask(qtbot, window)
    copy = next(
        button
        for button in answer(window).findChildren(QAbstractButton)
        if button.accessibleName() == "Copy answer"
    )
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == "Some **bold** text"


def test_chats_are_listed_by_last_use_renamed_deleted_and_brought_back(
    qtbot: QtBot, window: MainWindow
) -> None:
    ask(qtbot, window, "First chat")
    window.menus.actions["new"].trigger()
    ask(qtbot, window, "Second chat")
    qtbot.waitUntil(lambda: listed(window) == ["Second chat", "First chat"], timeout=5000)
    chats = window.sidebar.list
    chats.open_requested.emit(window.sidebar.model.ids[1])
    qtbot.waitUntil(lambda: window.windowTitle().startswith("First chat"), timeout=5000)
    chats.setFocus()
    qtbot.keyClick(chats, Qt.Key.Key_F2)
    editor = chats.findChild(QLineEdit)
    assert editor is not None
    editor.setText("Rome")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: listed(window) == ["Second chat", "Rome"], timeout=5000)
    assert window.windowTitle().startswith("Rome")
    qtbot.keyClick(chats, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: listed(window) == ["Second chat"], timeout=5000)
    assert window.session.conversation is None
    assert window.sidebar.undo.isVisible()
    qtbot.mouseClick(window.sidebar.undo.button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "Rome" in listed(window), timeout=5000)
    qtbot.waitUntil(lambda: window.windowTitle().startswith("Rome"), timeout=5000)
    assert [view.content() for view in window.page.view.views] == ["First chat", "Paris is the capital."]


def test_the_search_narrows_the_list(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    ask(qtbot, window, "About apples")
    window.menus.actions["new"].trigger()
    factory.script = ["All about pears"]
    ask(qtbot, window, "Something")
    window.menus.actions["find"].trigger()
    qtbot.keyClicks(window.sidebar.search, "pears")
    qtbot.waitUntil(lambda: listed(window) == ["Something"], timeout=5000)
    window.sidebar.search.setText("nowhere")
    qtbot.waitUntil(lambda: listed(window) == [], timeout=5000)
    assert window.sidebar.remark.text() == "No chat contains this text."
    window.sidebar.search.clear()
    qtbot.waitUntil(lambda: len(listed(window)) == 2, timeout=5000)


def test_drafts_are_kept_per_chat(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "First")
    first = window.session.conversation
    assert first is not None
    write(qtbot, window, "half a thought")
    window.menus.actions["new"].trigger()
    assert window.page.composer.text == ""
    write(qtbot, window, "something else")
    window.session.open(first.id)
    qtbot.waitUntil(lambda: window.page.composer.text == "half a thought", timeout=5000)
    window.menus.actions["new"].trigger()
    qtbot.waitUntil(lambda: window.page.composer.text == "something else", timeout=5000)


def test_a_message_that_cannot_be_saved_comes_back_into_the_composer(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageError("Your message could not be saved.", why="The disk is full.", action="Free space.")

    monkeypatch.setattr(ChatStore, "begin_exchange", full)
    write(qtbot, window, "precious words")
    press(qtbot, window)
    qtbot.waitUntil(lambda: window.findChild(MessageDialog) is not None, timeout=5000)
    assert window.page.composer.text == "precious words"
    assert window.page.composer.state is ComposerState.READY
    dialog = window.findChild(MessageDialog)
    assert dialog is not None
    assert "The disk is full." in dialog.accessibleDescription()
    dialog.reject()
