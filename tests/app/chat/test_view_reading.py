"""A reader of a conversation is not moved against their will."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest

from app.chat.prose import ProseArea
from app.chat.view import ConversationView
from tests.app.chat.conversation import LONG, at_end, prose, row, settle

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


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
