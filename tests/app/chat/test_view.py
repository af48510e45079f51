from __future__ import annotations

import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QDesktopServices, QTextCursor
from pytestqt.qtbot import QtBot

from app.chat.code import CodeArea
from app.chat.column import FIRST, PAGE
from app.chat.message import AssistantMessage
from app.chat.prose import ProseArea
from app.chat.prose_writer import ProseWriter
from app.chat.text_area import open_link
from app.chat.view import ConversationView
from app.storage import MessageState
from app.theme import theme
from tests.app.chat.conversation import at_end, last, prose, row, settle

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


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
