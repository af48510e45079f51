from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QTextCursor, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.code import CodeArea
from app.theme import theme

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")
PYTHON = "def f(x):\n    return 'text'  # remark\n"


@pytest.fixture
def area(qtbot: QtBot) -> CodeArea:
    theme().apply("light")
    made = CodeArea("py")
    qtbot.addWidget(made)
    made.resize(500, 200)
    made.show()
    return made


def colors_of(area: CodeArea, line: int) -> dict[str, QColor]:
    """The coloured words of a line, with their colours."""
    block = area.view.document().findBlockByNumber(line)
    text = block.text()
    return {
        text[piece.start : piece.start + piece.length]: piece.format.foreground().color()
        for piece in block.layout().formats()
    }


def test_code_is_coloured_while_it_streams_in(area: CodeArea, qtbot: QtBot) -> None:
    area.set_code(PYTHON[:1])
    qtbot.waitUntil(area._lexer.is_ready, timeout=5000)  # the language is loaded beside the window
    for end in range(1, len(PYTHON) + 1):
        area.set_code(PYTHON[:end])
    colors = theme().colors
    assert colors_of(area, 0)["def"] == colors.code_keyword
    assert colors_of(area, 0)["f"] == colors.code_name
    assert colors_of(area, 1)["# remark"] == colors.code_comment
    assert area.label == "Python"


def test_the_colours_follow_the_theme(area: CodeArea, qtbot: QtBot) -> None:
    area.set_code(PYTHON)
    qtbot.waitUntil(lambda: colors_of(area, 0) != {}, timeout=5000)
    theme().apply("dark")
    area.render_again()
    assert colors_of(area, 0)["def"] == theme().colors.code_keyword
    theme().apply("light")


def test_long_code_gets_its_colours_in_the_background(area: CodeArea, qtbot: QtBot) -> None:
    area.set_code(PYTHON * 400)
    assert colors_of(area, 798) == {}
    qtbot.waitUntil(lambda: colors_of(area, 798) != {}, timeout=5000)
    qtbot.waitUntil(lambda: not area._more.isActive(), timeout=5000)


def test_complete_lines_are_not_coloured_again(
    area: CodeArea, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    area.set_code(PYTHON * 40)
    qtbot.waitUntil(lambda: colors_of(area, 78) != {}, timeout=5000)
    touched: list[int] = []
    monkeypatch.setattr(
        area.view._colors, "rehighlightBlock", lambda block: touched.append(block.blockNumber())
    )
    for end in range(len(PYTHON)):
        area.set_code(PYTHON * 40 + PYTHON[:end])
    assert min(touched) >= 80 - 3


def test_all_lines_are_in_sight_whatever_their_height(area: CodeArea) -> None:
    area.set_code("x = 1\n" * 30 + "# 日本語 and 🙂\n" * 10 + "end")
    QApplication.processEvents()
    view = area.view
    last = view.document().lastBlock()
    bottom = view.blockBoundingGeometry(last).translated(view.contentOffset()).bottom()
    assert 0 < bottom <= view.viewport().height() + 1
    assert view.verticalScrollBar().value() == 0


def test_a_long_line_scrolls_sideways_and_only_sideways(area: CodeArea) -> None:
    area.set_code("x = '" + "long " * 100 + "'")
    QApplication.processEvents()
    bar = area.view.horizontalScrollBar()
    assert bar.maximum() > 0

    def turn(delta: QPoint, keys: Qt.KeyboardModifier) -> bool:
        middle = QPointF(20, 5)
        event = QWheelEvent(
            middle,
            middle,
            QPoint(),
            delta,
            Qt.MouseButton.NoButton,
            keys,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        area.view.wheelEvent(event)
        return event.isAccepted()

    assert not turn(QPoint(0, -120), Qt.KeyboardModifier.NoModifier)  # the conversation's
    assert bar.value() == 0
    assert turn(QPoint(0, -120), Qt.KeyboardModifier.ShiftModifier)
    assert bar.value() == 120
    assert turn(QPoint(-30, 0), Qt.KeyboardModifier.NoModifier)
    assert bar.value() == 150


def test_a_selection_in_code_survives_streaming(area: CodeArea) -> None:
    area.set_code(PYTHON)
    cursor = area.view.textCursor()
    cursor.setPosition(0)
    cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
    area.view.setTextCursor(cursor)
    area.set_code(PYTHON + "more")
    assert area.view.textCursor().selectedText().replace("\u2029", "\n") == PYTHON


def test_the_button_copies_the_code_as_it_is(area: CodeArea) -> None:
    area.set_code(PYTHON + "\tx  ")
    area._copy.click()
    assert QGuiApplication.clipboard().text() == PYTHON + "\tx  "


def test_what_only_the_end_of_the_code_tells_is_coloured_at_the_end(area: CodeArea, qtbot: QtBot) -> None:
    code = "cat <<E\nwords\nmore\nmore\nmore\nE\ndone\n"
    area = CodeArea("bash")
    qtbot.addWidget(area)
    area.set_code(code[:1])
    qtbot.waitUntil(area._lexer.is_ready, timeout=5000)
    for end in range(1, len(code) + 1):
        area.set_code(code[:end])
    assert colors_of(area, 1) == {}
    area.settle()
    qtbot.waitUntil(lambda: colors_of(area, 1) == {"words": theme().colors.code_string}, timeout=5000)
