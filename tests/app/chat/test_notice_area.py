"""Notices above the conversation: all of their words, without squeezing what is below."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.notice_area import _BELOW, NoticeArea
from app.chat.notice_bar import NoticeBar
from app.chat.notices import Action, MessageNotice
from app.widgets.breaking_text import BreakingText

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

LONG = MessageNotice("warning", "The program did not end properly the last time. " * 4)


def test_notices_take_what_they_need_and_then_scroll(qtbot: QtBot) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    notices = [NoticeBar(dismissable=True) for _ in range(3)]
    area = NoticeArea(notices)
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(area)
    column.addStretch()
    page.resize(400, 1200)
    page.show()
    assert area.height() == 0
    notices[0].show_notice(LONG)
    qtbot.waitUntil(lambda: area.height() == notices[0].heightForWidth(400) + _BELOW)
    assert area.verticalScrollBar().maximum() == 0
    notices[1].show_notice(LONG)
    notices[2].show_notice(LONG)
    page.resize(400, 500)
    bar = area.verticalScrollBar()
    qtbot.waitUntil(lambda: area.height() == 150 and bar.maximum() > 0)
    qtbot.waitUntil(lambda: all(note.height() >= note.heightForWidth(note.width()) for note in notices))
    for notice in notices:
        notice.show_notice(None)
    qtbot.waitUntil(lambda: area.height() == 0)


@pytest.mark.parametrize("width", [250, 300, 600])
def test_a_long_file_name_makes_no_notice_wider_than_its_place(qtbot: QtBot, width: int) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    notice = NoticeBar(dismissable=True)
    area = NoticeArea([notice])
    column = QVBoxLayout(page)
    column.setContentsMargins(0, 0, 0, 0)
    column.addWidget(area)
    column.addStretch()
    notice.show_notice(
        MessageNotice("warning", f"The damaged file is {'chats_' * 40}.", Action.DETAILS, "Details…")
    )
    page.resize(width, 2000)
    page.show()
    qtbot.waitUntil(lambda: notice.width() == area.viewport().width() == width)
    qtbot.waitUntil(lambda: notice.height() >= notice.heightForWidth(width))
    parts = [each for each in notice.findChildren(QWidget) if each.isVisible()]
    assert notice.button in parts
    for part in parts:
        place = QRect(part.mapTo(notice, QPoint(0, 0)), part.size())
        assert notice.rect().contains(place), type(part).__name__
    text = next(each for each in parts if isinstance(each, BreakingText))
    assert text.height() >= text.heightForWidth(text.width())
    assert text.document().size().height() <= text.viewport().height()
    beside = notice.button.mapTo(notice, QPoint(0, 0)).x() > text.mapTo(notice, text.rect().topRight()).x()
    assert beside is (width == 600)


def test_sign_first_line_and_buttons_of_a_notice_are_at_one_height(qtbot: QtBot) -> None:
    notice = NoticeBar(dismissable=True)
    qtbot.addWidget(notice)
    notice.show_notice(MessageNotice("warning", "Short.", Action.DETAILS, "Details…"))
    notice.resize(700, notice.heightForWidth(700))
    middles = {
        each.mapTo(notice, each.rect().center()).y()
        for each in (*notice.findChildren(QToolButton), notice.button, *notice.findChildren(BreakingText))
    }
    assert max(middles) - min(middles) <= 1
