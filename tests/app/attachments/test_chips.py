from __future__ import annotations

from datetime import UTC, datetime

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.attachments.chips import ChipRow
from app.attachments.field import AttachmentField
from app.attachments.form import Attachment, compose
from app.chat.message import UserMessage
from app.storage.rows import MessageRow, MessageState
from app.widgets.flow import FlowLayout

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

FILES = [Attachment(f"a file with a long name {number}.txt", "x\n" * number) for number in range(1, 4)]


def row_of(width: int, qtbot: QtBot) -> ChipRow:
    row = ChipRow(removable=True)
    qtbot.addWidget(row)
    row.resize(width, 400)
    row.show_files(FILES)
    row.layout().setGeometry(row.rect())
    return row


def test_chips_go_on_below_where_a_line_is_full(qtbot: QtBot) -> None:
    wide, narrow = row_of(3000, qtbot), row_of(300, qtbot)
    assert len({chip.y() for chip in wide.chips}) == 1
    assert len({chip.y() for chip in narrow.chips}) == 3
    assert narrow.heightForWidth(300) > 2 * wide.heightForWidth(3000)


def test_a_chip_is_never_wider_than_its_line(qtbot: QtBot) -> None:
    row = row_of(150, qtbot)
    assert all(chip.geometry().right() < 150 for chip in row.chips)
    assert row.minimumSizeHint().width() <= 150


def test_an_empty_line_of_widgets_takes_no_room(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    flow = FlowLayout(window)
    assert flow.heightForWidth(100) == 0
    assert flow.itemAt(0) is None
    assert flow.takeAt(0) is None


@pytest.mark.parametrize("text", ["", "What are these?"])
def test_a_bubble_shows_chips_and_only_what_was_typed(qtbot: QtBot, text: str) -> None:
    row = MessageRow(
        1, 1, "user", compose(FILES, text), MessageState.COMPLETE, datetime(2026, 1, 2, tzinfo=UTC)
    )
    view = UserMessage(row)
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.fit(700)
    view.show()
    shown = view.findChild(ChipRow)
    assert isinstance(shown, ChipRow)
    assert [chip.file for chip in shown.chips] == FILES
    assert all(chip.remove.isHidden() for chip in shown.chips)
    assert view._text.toPlainText() == text
    assert view._text.isVisible() is bool(text)
    assert view.content() == row.content


def test_chips_scroll_only_where_they_need_more_lines_than_are_shown(qtbot: QtBot) -> None:
    field = AttachmentField()
    qtbot.addWidget(field)
    field.resize(560, 200)
    field.add([Attachment(f"{number}.txt", "a") for number in range(4)])
    field.show()
    bar = field._area.verticalScrollBar()
    qtbot.waitUntil(lambda: field._area.height() == field.row.heightForWidth(field._area.width()))
    qtbot.waitUntil(lambda: bar.maximum() == 0)
    field.show_tokens([10**12] * 4)  # the chips are longer now, and take more lines
    qtbot.waitUntil(lambda: field._area.height() == field.row.heightForWidth(field._area.width()))
    qtbot.waitUntil(lambda: bar.maximum() == 0)
    field.add([Attachment(f"{number}.md", "a") for number in range(20)])
    qtbot.waitUntil(lambda: bar.maximum() > 0)
