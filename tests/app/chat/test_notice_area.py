"""Notices above the conversation: all of their words, without squeezing what is below."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.notice_area import NoticeArea
from app.chat.notice_bar import NoticeBar
from app.chat.notices import MessageNotice

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
    qtbot.waitUntil(lambda: 0 < area.height() == notices[0].heightForWidth(400))
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
