"""What can be done with the messages of the chat that is shown, by buttons, menus and keys."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.message import AssistantMessage, UserMessage
from app.storage.thread import StorageThread
from app.window import MainWindow
from engine.events import FinishReason
from engine.params import Message
from tests.app.fakes import ScriptedFactory

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


def ask(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.session.send(text)
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    rest(qtbot, window)


def rest(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)


def shown(window: MainWindow) -> list[str]:
    return [view.content() for view in window.page.view.views]


def wait_shown(qtbot: QtBot, window: MainWindow, *texts: str) -> None:
    qtbot.waitUntil(lambda: shown(window) == list(texts) and not window.session.busy, timeout=5000)


def view(window: MainWindow, place: int) -> UserMessage | AssistantMessage:
    return window.page.view.views[place]


def choose(window: MainWindow, place: int, text: str) -> None:
    menu = view(window, place).tools.menu()
    next(action for action in menu.actions() if action.text() == text).trigger()
    menu.deleteLater()


def test_a_question_is_edited_at_its_place_and_both_versions_can_be_turned_over(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window, "First?")
    ask(qtbot, window, "Second?")
    window.activateWindow()
    view(window, 0).tools.edit.click()
    editor = view(window, 0).editor
    assert editor is not None
    assert editor.edit.hasFocus()
    assert not editor.save_button.isEnabled()  # nothing has changed yet
    qtbot.keyClicks(editor.edit, " Or last?")
    factory.script = ["Last."]
    qtbot.keyClick(editor.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    wait_shown(qtbot, window, "First? Or last?", "Last.")
    assert factory.engine.conversations[-1] == [Message("user", "First? Or last?")]
    tools = view(window, 0).tools
    assert tools.place.text() == "2/2"
    assert tools.place.accessibleName() == "Version 2 of 2"
    assert tools.earlier.isEnabled()
    assert not tools.later.isEnabled()
    tools.earlier.click()
    capital = "Paris is the capital."
    wait_shown(qtbot, window, "First?", capital, "Second?", capital)
    assert view(window, 0).tools.place.text() == "1/2"
    view(window, 0).tools.later.click()
    wait_shown(qtbot, window, "First? Or last?", "Last.")


def test_escape_leaves_a_message_as_it_was_and_stops_nothing(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window, "First?")
    window.activateWindow()
    factory.gate = threading.Event()
    window.session.send("Second?")
    qtbot.waitUntil(lambda: len(shown(window)) == 4 and shown(window)[3] == "Paris ", timeout=5000)
    view(window, 0).begin_edit()
    editor = view(window, 0).editor
    assert editor is not None
    qtbot.keyClicks(editor.edit, " changed")
    qtbot.keyClick(editor.edit, Qt.Key.Key_Escape)
    assert view(window, 0).editor is None
    assert window.session.busy
    assert QApplication.focusWidget() is view(window, 0).tools.edit
    factory.gate.set()
    rest(qtbot, window)
    assert shown(window)[0] == "First?"


def test_an_edit_while_an_answer_is_written_is_refused_and_kept(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window, "First?")
    factory.gate = threading.Event()
    window.session.send("Second?")
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    view(window, 0).begin_edit()
    editor = view(window, 0).editor
    assert editor is not None
    editor.edit.setPlainText("precious words")
    with qtbot.waitSignal(window.session.failed):
        editor.save_button.click()
    assert editor.edit.toPlainText() == "precious words"
    factory.gate.set()
    rest(qtbot, window)
    factory.script = ["Done."]
    editor.save_button.click()
    wait_shown(qtbot, window, "precious words", "Done.")


def test_an_answer_is_put_right_and_the_chat_goes_on_from_there(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window, "Capital?")
    view(window, 1).begin_edit()
    editor = view(window, 1).editor
    assert editor is not None
    editor.edit.setPlainText("It is Paris.")
    editor.save_button.click()
    wait_shown(qtbot, window, "Capital?", "It is Paris.")
    assert view(window, 1).tools.place.text() == "2/2"
    ask(qtbot, window, "Sure?")
    assert factory.engine.conversations[-1] == [
        Message("user", "Capital?"),
        Message("assistant", "It is Paris."),
        Message("user", "Sure?"),
    ]


def test_an_answer_in_the_middle_is_had_anew(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    factory.script = ["Another."]
    choose(window, 1, "Regenerate this answer")
    wait_shown(qtbot, window, "One", "Another.")
    assert view(window, 1).tools.place.text() == "2/2"


def test_an_answer_that_was_cut_off_is_continued_where_it_ends(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.reason = FinishReason.LENGTH
    factory.script = ["One, two"]
    ask(qtbot, window, "Count")
    assert view(window, 1).tools.go_on.isVisible()
    factory.reason = FinishReason.EOS
    factory.script = [", three", ", four."]
    view(window, 1).tools.go_on.click()
    wait_shown(qtbot, window, "Count", "One, two, three, four.")
    assert factory.engine.conversations[-1] == [Message("user", "Count"), Message("assistant", "One, two")]
    assert not view(window, 1).tools.go_on.isVisible()  # the model has come to its end
    assert view(window, 1).tools.place.isHidden()  # it is one answer


def test_a_turn_is_deleted_and_brought_back(qtbot: QtBot, window: MainWindow) -> None:
    capital = "Paris is the capital."
    for question in ("One", "Two", "Three"):
        ask(qtbot, window, question)
    kept = view(window, 0)
    choose(window, 3, "Delete this question and its answer")
    wait_shown(qtbot, window, "One", capital, "Three", capital)
    assert view(window, 0) is kept  # what has not changed is not laid out again
    undo = window.sidebar.undo
    assert undo.isVisible()
    undo.button.click()
    wait_shown(qtbot, window, "One", capital, "Two", capital, "Three", capital)


def test_deleting_the_only_turn_shows_the_welcome(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "One")
    choose(window, 0, "Delete this question and its answer")
    qtbot.waitUntil(lambda: window.page.stack.currentWidget() is window.page.welcome, timeout=5000)
    window.sidebar.undo.button.click()
    wait_shown(qtbot, window, "One", "Paris is the capital.")
    assert window.page.stack.currentWidget() is window.page.view


def test_nothing_is_turned_over_while_an_answer_is_written(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory, storage: StorageThread
) -> None:
    ask(qtbot, window, "One")
    factory.gate = threading.Event()
    window.session.send("Two")
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    before = shown(window)
    with qtbot.waitSignal(window.session.failed):
        choose(window, 0, "Delete this question and its answer")
    assert shown(window)[:3] == before[:3]
    assert not view(window, 3).tools.copy.isVisible()  # nor is anything offered at the answer itself
    factory.gate.set()
    rest(qtbot, window)


def test_an_answer_is_copied_with_and_without_its_marks(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.script = ["# Title\n\nSome **bold** text\n\n- one\n- two"]
    ask(qtbot, window, "One")
    choose(window, 1, "Copy as Markdown")
    assert QGuiApplication.clipboard().text() == factory.script[0]
    choose(window, 1, "Copy as plain text")
    assert QGuiApplication.clipboard().text() == "Title\n\nSome bold text\n\n• one\n• two"


def test_the_menu_edits_the_last_question_and_goes_on_with_the_answer(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.reason = FinishReason.LENGTH
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    window.menus.actions["continue"].trigger()
    capital = "Paris is the capital."
    wait_shown(qtbot, window, "One", capital, "Two", capital + capital)
    window.menus.actions["edit_last"].trigger()
    editor = view(window, 2).editor
    assert editor is not None
    editor.edit.setPlainText("Three")
    editor.save_button.click()
    wait_shown(qtbot, window, "One", capital, "Three", capital)


def test_an_answer_that_reached_its_longest_length_offers_to_be_continued(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    factory.reason = FinishReason.LENGTH
    ask(qtbot, window, "One")
    last = view(window, 1)
    assert isinstance(last, AssistantMessage)
    assert last.notice.button.text() == "Continue"
    factory.reason = FinishReason.EOS
    factory.script = [" Yes."]
    last.notice.button.click()
    wait_shown(qtbot, window, "One", "Paris is the capital. Yes.")


def test_versions_are_turned_over_by_the_keyboard_alone(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    ask(qtbot, window, "One")
    for number in range(2):
        factory.script = [f"Version {number + 2}"]
        window.session.regenerate()
        qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
        rest(qtbot, window)
    window.activateWindow()
    view(window, 1).tools.earlier.setFocus()
    for expected in ("Version 2", "Paris is the capital."):
        focused = QApplication.focusWidget()
        assert focused is not None
        assert focused.accessibleName() == "Earlier version"
        qtbot.keyClick(focused, Qt.Key.Key_Space)
        wait_shown(qtbot, window, "One", expected)
    focused = QApplication.focusWidget()  # there is no earlier one: the neighbour
    assert focused is not None
    assert view(window, 1).isAncestorOf(focused)


def test_the_keyboard_is_not_lost_with_a_deleted_turn(qtbot: QtBot, window: MainWindow) -> None:
    ask(qtbot, window, "One")
    ask(qtbot, window, "Two")
    window.activateWindow()
    view(window, 3).tools.more.setFocus()
    choose(window, 3, "Delete this question and its answer")
    qtbot.waitUntil(lambda: len(shown(window)) == 2, timeout=5000)
    assert QApplication.focusWidget() is window.page.view
