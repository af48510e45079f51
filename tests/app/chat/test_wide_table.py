from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QTextTable, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.body import MessageBody
from app.chat.prose import ProseArea
from app.chat.wide_table import WideTable, is_wide_table

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

COLUMNS = 12


def table(columns: int = COLUMNS, rows: int = 3, word: str = "incomprehensible") -> str:
    lines = ["| " + " | ".join(f"{word}{column}" for column in range(columns)) + " |", "|" + "---|" * columns]
    lines += ["| " + " | ".join(str(row * column) for column in range(columns)) + " |" for row in range(rows)]
    return "\n".join(lines)


@pytest.fixture
def body(qtbot: QtBot) -> MessageBody:
    made = MessageBody()
    qtbot.addWidget(made)
    made.resize(400, 300)
    made.show()
    return made


def stream(body: MessageBody, text: str, step: int = 7) -> None:
    for place in range(0, len(text), step):
        body.append(text[place : place + step])
        QApplication.processEvents()
    body.finish()


def kinds(body: MessageBody) -> list[type]:
    return [type(area) for area in body.areas]


def wide(body: MessageBody) -> WideTable:
    (found,) = [area for area in body.areas if isinstance(area, WideTable)]
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (table(5), True),
        (table(4), False),
        ("| a | b | c | d | e", True),  # its first line is still being written
        ("a | b | c | d | e | f", False),
        (r"| a \| b \| c \| d \| e | f |", False),
        ("", False),
    ],
)
def test_many_columns_make_a_table_wide(source: str, expected: bool) -> None:
    assert is_wide_table(source) is expected


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_the_same_areas_however_the_text_comes(qtbot: QtBot, body: MessageBody, step: int) -> None:
    stream(body, f"Before.\n\n{table()}\n\nAfter.\n\n{table(2)}\n\n{table()}", step)
    assert kinds(body) == [ProseArea, WideTable, ProseArea, WideTable]
    before, first, after, _ = body.areas
    assert before.toPlainText().strip() == "Before."  # type: ignore[union-attr]
    assert first.blocks == [table() + "\n"] or first.blocks == [table()]  # type: ignore[union-attr]
    assert "After." in after.toPlainText()  # type: ignore[union-attr]


@pytest.mark.parametrize("step", [1, 10_000])
def test_a_message_may_begin_with_a_wide_table(qtbot: QtBot, body: MessageBody, step: int) -> None:
    stream(body, table(), step)
    assert kinds(body) == [WideTable]
    assert body.areas[0].isVisible()


def test_it_scrolls_sideways_from_its_beginning_and_breaks_no_word(qtbot: QtBot, body: MessageBody) -> None:
    stream(body, table())
    area = wide(body)
    bar = area.horizontalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == 0, timeout=5000)
    (cells,) = [frame for frame in area.document().rootFrame().childFrames() if isinstance(frame, QTextTable)]
    first = cells.cellAt(0, 0).firstCursorPosition().block()
    assert first.layout().lineCount() == 1
    qtbot.waitUntil(lambda: area.height() > area.document().size().height(), timeout=5000)  # room for the bar
    place = QPointF(area.rect().center())
    for delta, moves in ((QPoint(0, -120), False), (QPoint(-120, 0), True)):
        event = QWheelEvent(
            place,
            area.mapToGlobal(place),
            QPoint(),
            delta,
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        area.wheelEvent(event)
        assert event.isAccepted() is moves
        assert (bar.value() > 0) is moves


def test_a_table_of_a_script_from_the_right_begins_there(qtbot: QtBot, body: MessageBody) -> None:
    stream(body, "| עמודה | ערך |\n|---|---|\n| אחת | 1 |\n")
    document = body.areas[0].document()  # type: ignore[union-attr]
    (cells,) = [frame for frame in document.rootFrame().childFrames() if isinstance(frame, QTextTable)]
    read = [
        [cells.cellAt(row, column).firstCursorPosition().block().text() for column in (0, 1)]
        for row in (0, 1)
    ]
    assert read == [["ערך", "עמודה"], ["1", "אחת"]]
    assert cells.format().alignment() & Qt.AlignmentFlag.AlignRight
