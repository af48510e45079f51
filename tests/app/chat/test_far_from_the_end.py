"""An answer is being written while the reader is far above it, where its view is not laid out."""

from __future__ import annotations

import threading

import pytest
from pytestqt.qtbot import QtBot

from app.chat.message import AssistantMessage
from app.chat.view import ConversationView
from app.storage import MessageState
from app.storage.thread import StorageThread
from app.window import MainWindow
from tests.app.chat.conversation import last, row, settle
from tests.app.chat.hands import answer, open_long_chat, press, write
from tests.app.fakes import ScriptedFactory

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def far(view: ConversationView) -> ConversationView:
    """A view of the beginning of a long chat, whose last answer has said "One" by now."""
    rows = [row(number, "user" if number % 2 else "assistant", f"Text {number}") for number in range(1, 200)]
    view.show_messages(rows)
    view.add_message(row(200, "assistant", "", MessageState.STREAMING))
    view.append_text(200, "One")
    view.reveal(1)
    settle()
    assert view.column.streaming_view(200) is None
    return view


def test_its_text_is_whole_when_the_reader_comes_back(far: ConversationView) -> None:
    far.verticalScrollBar().setValue(far.verticalScrollBar().maximum())  # of what is laid out
    far.append_text(200, " two")
    assert far.new_text_button.isVisible()
    far.new_text_button.click()
    assert last(far).content() == "One two"
    assert last(far).streaming
    far.append_text(200, " three")
    far.finish_message(row(200, "assistant", "One two three"))
    assert last(far).content() == "One two three"
    assert not last(far).streaming


def test_its_end_is_shown_although_it_came_while_the_reader_was_away(far: ConversationView) -> None:
    far.append_text(200, " two")
    far.finish_message(row(200, "assistant", "One two"))
    while far.column.later.isVisible():
        far.column.later.click()
    assert last(far).row.id == 200
    assert last(far).content() == "One two"
    assert not last(far).streaming


def test_in_the_window_nothing_of_it_is_missing(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, factory: ScriptedFactory
) -> None:
    open_long_chat(qtbot, window, storage, exchanges=60)
    factory.gate = threading.Event()
    write(qtbot, window, "And now?")
    press(qtbot, window)
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    qtbot.waitUntil(lambda: answer(window).content() == "Paris ", timeout=5000)
    view = window.page.view
    view.reveal(window.session.messages[0].id)
    factory.gate.set()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    view.scroll_to_end()
    shown = answer(window)
    assert isinstance(shown, AssistantMessage)
    assert shown.content() == "Paris is the capital."
    assert not shown.streaming
