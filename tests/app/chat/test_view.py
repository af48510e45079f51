from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from PySide6.QtCore import QPoint, QPointF, QUrl
from PySide6.QtGui import QDesktopServices, QTextCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.code import CodeArea
from app.chat.column import FIRST, PAGE
from app.chat.message import AssistantMessage
from app.chat.prose import ProseArea
from app.chat.prose_writer import ProseWriter
from app.chat.text_area import open_link
from app.chat.view import ConversationView
from app.storage import MessageRow, MessageState
from app.theme import theme
from engine.params import Role

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
LONG = "\n\n".join(f"Paragraph {number} of a long text that fills the view." for number in range(60))


def row(number: int, role: Role, content: str, state: MessageState = MessageState.COMPLETE) -> MessageRow:
    return MessageRow(number, 1, role, content, state, datetime.now(UTC), model="M")


def settle() -> None:
    """Let Qt lay out what has changed."""
    for _ in range(5):
        QApplication.processEvents()


@pytest.fixture
def view(qtbot: QtBot) -> ConversationView:
    theme().apply("light")
    made = ConversationView()
    qtbot.addWidget(made)
    made.resize(700, 500)
    made.show()
    return made


@pytest.fixture
def streaming(view: ConversationView) -> ConversationView:
    """A view with a long answer that is being written."""
    view.show_messages([row(1, "user", "Tell me a lot")])
    view.add_message(row(2, "assistant", "", MessageState.STREAMING))
    view.append_text(2, LONG + "\n\n")
    settle()
    return view


def last(view: ConversationView) -> AssistantMessage:
    message = view.views[-1]
    assert isinstance(message, AssistantMessage)
    return message


def prose(view: ConversationView) -> ProseArea:
    area = last(view).body.areas[0]
    assert isinstance(area, ProseArea)
    return area


def at_end(view: ConversationView) -> bool:
    bar = view.verticalScrollBar()
    return bar.maximum() > 0 and bar.value() == bar.maximum()


def test_the_view_follows_the_text_while_the_reader_is_at_the_end(streaming: ConversationView) -> None:
    assert at_end(streaming)
    streaming.append_text(2, "More text.\n\nAnd more.")
    settle()
    assert at_end(streaming)
    assert streaming.new_text_button.isHidden()


def test_a_reader_who_scrolled_up_is_not_moved_and_told_of_new_text(streaming: ConversationView) -> None:
    bar = streaming.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    place = bar.value()
    streaming.append_text(2, LONG)
    settle()
    assert bar.value() == place
    assert streaming.new_text_button.isVisible()
    streaming.new_text_button.click()
    settle()
    assert at_end(streaming)
    assert streaming.new_text_button.isHidden()
    streaming.append_text(2, "\n\nFollowing again.")
    settle()
    assert at_end(streaming)


def test_the_wheel_over_a_message_scrolls_the_conversation(streaming: ConversationView) -> None:
    before = streaming.verticalScrollBar().value()
    over_the_text = QPointF(prose(streaming).viewport().mapTo(streaming, QPoint(30, 0)).x(), 200)
    QTest.wheelEvent(streaming.windowHandle(), over_the_text, QPoint(0, 240))
    settle()
    assert streaming.verticalScrollBar().value() < before


def test_settled_text_is_not_rendered_again(
    streaming: ConversationView, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    write = ProseWriter.write

    def counting(writer: ProseWriter, source: str) -> None:
        rendered.append(source)
        write(writer, source)

    monkeypatch.setattr(ProseWriter, "write", counting)
    for _ in range(20):
        streaming.append_text(2, "word ")
    assert rendered
    assert set(rendered) <= {"word " * count for count in range(1, 21)}  # never more than the open tail


def test_a_selection_survives_streaming(streaming: ConversationView) -> None:
    area = prose(streaming)
    cursor = QTextCursor(area.document())
    cursor.setPosition(5)
    cursor.setPosition(60, QTextCursor.MoveMode.KeepAnchor)
    area.setTextCursor(cursor)
    chosen = area.textCursor().selectedText()
    streaming.append_text(2, "tail ")
    for _ in range(10):
        streaming.append_text(2, "and *more* words\n\n")
    assert area.textCursor().selectedText() == chosen


def test_a_selection_in_the_open_tail_survives_too(streaming: ConversationView, qtbot: QtBot) -> None:
    streaming.append_text(2, "the open tail")
    area = prose(streaming)
    cursor = QTextCursor(area.document())
    cursor.movePosition(QTextCursor.MoveOperation.End)
    cursor.movePosition(QTextCursor.MoveOperation.Left, QTextCursor.MoveMode.KeepAnchor, 4)
    area.setTextCursor(cursor)
    for _ in range(5):
        streaming.append_text(2, " **goes on**")
    assert area.textCursor().selectedText() == "tail"
    qtbot.waitUntil(lambda: area.toPlainText().endswith("the open tail" + " goes on" * 5))
    assert area.textCursor().selectedText() == "tail"


def test_streamed_text_ends_up_as_text_rendered_at_once(view: ConversationView) -> None:
    source = "# Title\n\ntext *one*\n\n1. a\n2. b\n   - c\n\n| x | y |\n|---|---|\n| 1 | 2 |"
    source += "\n\n> q\n\n- end\n- of it"
    view.show_messages([row(1, "assistant", source)])
    expected = prose(view).toHtml()
    view.show_messages([])
    view.add_message(row(2, "assistant", "", MessageState.STREAMING))
    for character in source:
        view.append_text(2, character)
    view.finish_message(row(2, "assistant", source))
    assert prose(view).toHtml() == expected


def test_code_is_shown_apart_while_it_streams(view: ConversationView) -> None:
    view.show_messages([])
    view.add_message(row(1, "assistant", "", MessageState.STREAMING))
    view.append_text(1, "Look:\n\n```python\nx = 1\ny = ")
    areas = last(view).body.areas
    assert [type(area) for area in areas] == [ProseArea, CodeArea]
    code = areas[1]
    assert isinstance(code, CodeArea)
    assert code.code == "x = 1\ny = "
    view.append_text(1, "2\n```\nDone.")
    assert code.code == "x = 1\ny = 2"
    assert prose(view).toPlainText() == "Look:"
    assert len(last(view).body.areas) == 3


def test_raw_html_is_text_and_images_are_not_fetched(view: ConversationView) -> None:
    view.show_messages([row(1, "assistant", '<b onclick="x">hi</b> ![a cat](http://x.org/cat.png)')])
    area = prose(view)
    assert area.toPlainText() == '<b onclick="x">hi</b> [image: a cat]'
    assert area.loadResource(2, QUrl("http://x.org/cat.png")) is None
    assert "<img" not in area.toHtml()


def test_lines_end_where_the_model_ended_them(view: ConversationView) -> None:
    source = "Leaves fall,\nwinds call.\n\n- a\n- b\n  and more of it\n\n| x | y |\n|---|---|\n| 1 | 2 |"
    view.show_messages([row(1, "assistant", source)])
    lines = prose(view).toPlainText().split("\n")
    assert lines[:4] == ["Leaves fall,", "winds call.", "a", "b"]
    assert lines[4:] == ["and more of it", "", "x", "y", "1", "2", ""]


@pytest.mark.parametrize(
    ("link", "opened"),
    [
        ("https://example.org", True),
        ("http://example.org", True),
        ("mailto:a@example.org", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("data:text/html,x", False),
        ("relative.html", False),
    ],
)
def test_only_harmless_links_open(monkeypatch: pytest.MonkeyPatch, link: str, opened: bool) -> None:
    seen: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: seen.append(url.toString()) or True)
    assert open_link(QUrl(link)) is opened
    assert bool(seen) is opened


def test_a_long_chat_lays_out_its_end_at_once_a_page_soon_and_the_rest_on_request(
    qtbot: QtBot, view: ConversationView
) -> None:
    rows = [row(number, ("user", "assistant")[number % 2], f"Message {number}") for number in range(100)]
    view.show_messages(rows)
    assert len(view.views) == FIRST
    view.verticalScrollBar().setValue(10)  # the reader does not stay at the end
    qtbot.waitUntil(lambda: len(view.views) == PAGE, timeout=5000)
    settle()
    assert len(view.views) == PAGE
    view.scroll_to_end()
    assert view.views[-1].content() == "Message 99"
    assert at_end(view)
    first = view.views[0]
    view.verticalScrollBar().setValue(0)
    top = first.mapTo(view.viewport(), QPoint(0, 0)).y()
    view.column.show_earlier()
    settle()
    assert len(view.views) == 2 * PAGE
    assert view.views[0].content() == "Message 20"
    assert abs(first.mapTo(view.viewport(), QPoint(0, 0)).y() - top) <= 2  # the reader is not moved


def test_a_bubble_is_as_wide_as_its_text_up_to_a_limit(view: ConversationView) -> None:
    view.show_messages([row(1, "user", "Hi"), row(3, "user", "word " * 200), row(5, "user", "x" * 900)])
    settle()
    short, long, endless = (bubble._bubble for bubble in view.views)  # type: ignore[union-attr]
    assert short.width() < 120
    assert long.width() < view.width()
    assert long.height() > 3 * short.height()
    assert endless.width() < view.width()


def test_the_theme_changes_the_colours_of_what_is_there(view: ConversationView) -> None:
    view.show_messages([row(1, "user", "Hi"), row(2, "assistant", "text\n\n```\ncode\n```\n\nmore")])
    before = prose(view).toHtml()
    theme().apply("dark")
    after = prose(view).toHtml()
    assert before != after
    assert theme().colors.text.name() in after
    assert prose(view).toPlainText() == "text"
    theme().apply("light")


def test_messages_that_are_gone_are_deleted(view: ConversationView, qtbot: QtBot) -> None:
    view.show_messages([row(number, "assistant", "text\n\n```\nx\n```") for number in range(5)])
    gone: list[bool] = []
    for message in view.views:
        message.destroyed.connect(lambda: gone.append(True))
    view.show_messages([])
    qtbot.waitUntil(lambda: len(gone) == 5)
    assert view.findChildren(AssistantMessage) == []


def test_only_the_answer_that_ends_is_changed(streaming: ConversationView) -> None:
    streaming.append_text(99, "of another chat")
    streaming.finish_message(replace(row(99, "assistant", "x"), note="other"))
    assert "of another chat" not in last(streaming).content()
    assert last(streaming).streaming


@pytest.mark.slow
def test_two_thousand_messages_are_there_at_once(view: ConversationView) -> None:
    """Measured 130 ms of processor time, with what the store needs to read them."""
    text = "Some **bold** text with `code`:\n\n- one\n- two\n\n```python\nx = 1\n```\n" + "words " * 60
    rows = [row(number, ("user", "assistant")[number % 2], text) for number in range(2000)]
    view.show_messages(rows[:2])
    start = time.process_time()
    view.show_messages(rows)
    view.grab()
    assert time.process_time() - start < 0.3


def test_the_reader_stays_at_a_line_when_what_is_above_gets_higher(streaming: ConversationView) -> None:
    area, bar = prose(streaming), streaming.verticalScrollBar()
    middle = bar.maximum() // 2
    bar.setValue(middle)

    def line_at_top() -> str:
        return area.cursorForPosition(area.mapFrom(streaming.viewport(), QPoint(0, 5))).block().text()

    line = line_at_top()
    cursor = QTextCursor(area.document())
    cursor.insertText("grown\u2028" * 9)  # as a formula that is drawn late
    settle()
    assert bar.value() > middle + 50
    assert line_at_top() == line
    streaming.resize(500, 500)
    settle()
    assert line_at_top() == line


def test_a_reader_in_another_message_is_not_moved_either(view: ConversationView) -> None:
    view.show_messages([row(number, "assistant", LONG) for number in range(4)])
    settle()
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2 + 100)
    reading = next(message for message in view.views if message.geometry().bottom() > bar.value())
    top = reading.mapTo(view.viewport(), QPoint(0, 0)).y()
    first = view.views[0].body.areas[0]  # type: ignore[union-attr]
    assert isinstance(first, ProseArea)
    first.add_settled(LONG)
    settle()
    assert abs(reading.mapTo(view.viewport(), QPoint(0, 0)).y() - top) <= 1
