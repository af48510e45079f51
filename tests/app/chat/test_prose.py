from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextBlock, QTextBlockFormat, QTextCursor, QTextFormat, QTextTable
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat import table_writer
from app.chat.blocks import split
from app.chat.formulas import formulas
from app.chat.prose import QUICK, ProseArea
from app.chat.prose_writer import quote_places
from app.theme import theme

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def area(qtbot: QtBot) -> ProseArea:
    theme().apply("light")
    made = ProseArea()
    qtbot.addWidget(made)
    made.resize(500, 300)
    made.show()
    return made


def show(area: ProseArea, source: str) -> list[QTextBlock]:
    """Settle the source; the blocks of text, without the empty ones around tables."""
    for block in split(source):
        area.add_settled(block.text)
    found, block = [], area.document().begin()
    while block.isValid():
        if block.text():
            found.append(block)
        block = block.next()
    return found


def test_lists_are_numbered_nested_and_ticked(area: ProseArea) -> None:
    source = "1. one\n2. two\n   - inner\n\n     more of it\n3. three\n\n- [x] done\n- [ ] open\n- plain"
    one, two, inner, more, three, done, open_, plain = show(area, source)
    lists = [block.textList() for block in (one, two, inner, three, plain)]
    assert [made.itemText(block) for made, block in zip(lists[:2], (one, two), strict=True)] == ["1.", "2."]
    assert three.textList().itemText(three) == "3."
    assert inner.textList().format().indent() == 2
    assert more.textList() is None
    assert more.blockFormat().indent() == 2
    markers = [block.blockFormat().marker() for block in (done, open_, plain)]
    kinds = QTextBlockFormat.MarkerType
    assert markers == [kinds.Checked, kinds.Unchecked, kinds.NoMarker]
    assert [block.text() for block in (done, open_)] == ["done", "open"]


def test_a_list_of_equal_numbers_counts(area: ProseArea) -> None:
    blocks = show(area, "1. a\n1. b\n1. c")
    assert [block.textList().itemText(block) for block in blocks] == ["1.", "2.", "3."]


def test_tables_have_a_heading_and_aligned_columns(area: ProseArea) -> None:
    show(area, "| a | b | c |\n|:--|--:|:-:|\n| 1 | **2** | `3` |\n\nafter")
    (table,) = [frame for frame in area.document().rootFrame().childFrames() if isinstance(frame, QTextTable)]
    assert (table.rows(), table.columns()) == (2, 3)
    cells = [table.cellAt(1, column).firstCursorPosition() for column in range(3)]
    assert [cell.block().text() for cell in cells] == ["1", "2", "3"]
    right, middle = (cell.blockFormat().alignment() for cell in cells[1:])
    assert right & Qt.AlignmentFlag.AlignRight
    assert middle & Qt.AlignmentFlag.AlignHCenter
    assert table.format().toTableFormat().headerRowCount() == 1


def test_quotes_are_indented_on_the_side_where_reading_begins(area: ProseArea) -> None:
    left, inner, right, after = show(area, "> quote\n>\n> > inner\n\n> اقتباس\n\nafter")
    level = QTextFormat.Property.BlockQuoteLevel
    assert [block.blockFormat().intProperty(level) for block in (left, inner, right, after)] == [1, 2, 1, 0]
    assert left.blockFormat().leftMargin() < inner.blockFormat().leftMargin()
    assert right.blockFormat().leftMargin() == 0
    assert right.blockFormat().rightMargin() > 0


def test_bars_are_painted_beside_quotes(area: ProseArea) -> None:
    show(area, "text\n\n> quote\n>\n> more")
    QApplication.processEvents()
    picture = area.grab().toImage()
    ratio = picture.devicePixelRatio()
    column = [picture.pixelColor(round(3 * ratio), y) for y in range(picture.height())]
    bar = [y for y, color in enumerate(column) if color == theme().colors.border]
    assert len(bar) > area.fontMetrics().height() * 2
    assert bar == list(range(bar[0], bar[-1] + 1))  # through the gap between the paragraphs


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("[a](https://x.org/y)", "https://x.org/y"),
        ("see https://x.org/y.", "https://x.org/y"),
        ("<https://x.org/y>", "https://x.org/y"),
        ("[a](mailto:a@x.org)", "mailto:a@x.org"),
        ("[a](javascript:alert)", ""),
        ("[a](file:///etc/passwd)", ""),
        ("[a](relative.html)", ""),
        ("![a](file:///etc/passwd)", ""),
        ("`https://x.org/y`", ""),
    ],
)
def test_only_harmless_links_are_links(area: ProseArea, source: str, address: str) -> None:
    show(area, source)
    found = {
        piece.format.anchorHref()
        for piece in area.document().begin().textFormats()
        if piece.format.isAnchor()
    }
    assert found == ({address} if address else set())


def test_arabic_and_hebrew_are_read_from_the_right(area: ProseArea) -> None:
    latin, arabic, hebrew, mixed = show(area, "Latin\n\nمرحبا `code` 12\n\nשלום\n\nLatin مرحبا")
    directions = [block.textDirection() for block in (latin, arabic, hebrew, mixed)]
    to_the_left, to_the_right = Qt.LayoutDirection.RightToLeft, Qt.LayoutDirection.LeftToRight
    assert directions == [to_the_right, to_the_left, to_the_left, to_the_right]


def test_in_a_table_from_the_right_figures_are_below_their_heading(area: ProseArea) -> None:
    source = "| اللون | الطول | يمين | يسار |\n|---|---|--:|:--|\n| أزرق | 450 nm | لون | لون |"
    show(area, source)
    QApplication.processEvents()
    (table,) = [frame for frame in area.document().rootFrame().childFrames() if isinstance(frame, QTextTable)]
    layout = area.document().documentLayout()
    sides = []
    for column in range(3, -1, -1):  # the first one is at the right
        block = table.cellAt(1, column).firstCursorPosition().block()
        line, room = block.layout().lineAt(0), layout.blockBoundingRect(block)
        text = line.naturalTextRect()
        sides.append("right" if text.left() > room.width() - text.right() else "left")
    assert sides == ["right", "right", "right", "left"]


@pytest.mark.parametrize(
    "text", ["日本語と中文。" * 40, "한국어 문장입니다. " * 40, "🙂👩‍👩‍👧‍👦🇩🇪" * 40, "e\u0301n\u0303" * 100]
)
def test_long_lines_of_every_script_wrap(area: ProseArea, text: str) -> None:
    (block,) = show(area, text)
    QApplication.processEvents()
    assert block.layout().lineCount() > 1
    assert area.document().size().width() <= area.viewport().width() + 1
    assert block.text() == text.strip()


def test_a_long_tail_is_rendered_less_often(area: ProseArea, qtbot: QtBot) -> None:
    rendered: list[str] = []
    replace_tail = area._replace_tail

    def slow(source: str) -> None:
        rendered.append(source)
        qtbot.wait(QUICK + 5)
        replace_tail(source)

    area._replace_tail = slow  # type: ignore[method-assign]
    for end in range(1, 21):
        area.set_tail("word " * end)
    assert len(rendered) == 1
    qtbot.waitUntil(lambda: rendered[-1] == "word " * 20, timeout=5000)
    assert len(rendered) == 2


def test_a_selection_across_settled_text_and_tail_stays(area: ProseArea) -> None:
    show(area, "settled text")
    area.set_tail("tail **bo")
    cursor = QTextCursor(area.document())
    cursor.setPosition(8)
    cursor.setPosition(17, QTextCursor.MoveMode.KeepAnchor)
    area.setTextCursor(cursor)
    assert area.textCursor().selectedText() == "text\u2029tail"
    area.set_tail("tail **bold** and")
    area.add_settled("tail **bold** and on")
    assert area.textCursor().selectedText() == "text\u2029tail"


TABLE = "| a | b |\n|---|--:|\n" + "".join(f"| row {n} | *{n}* $x$ |\n" for n in range(12))


def test_a_growing_table_is_extended_by_its_new_rows(
    area: ProseArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    fill = table_writer._fill

    def counting(table: QTextTable, first: int, rows: list[object], inline: object) -> None:
        written.append(len(rows))
        fill(table, first, rows, inline)  # type: ignore[arg-type]

    monkeypatch.setattr(table_writer, "_fill", counting)
    area.add_settled("before")
    for end in range(1, len(TABLE) + 1):
        area.set_tail(TABLE[:end])
        area._render_tail()
    assert len(written) > 100
    assert max(written[10:]) <= 2


@pytest.mark.parametrize(
    "source", [TABLE, TABLE + "not a row", TABLE + "> quote", TABLE.replace("--:", "---")]
)
def test_a_table_in_pieces_is_the_table_at_once(area: ProseArea, qtbot: QtBot, source: str) -> None:
    whole = ProseArea()
    qtbot.addWidget(whole)
    for made in (whole, area):
        made.add_settled("before")
    for end in range(1, len(source) + 1):
        area.set_tail(source[:end])
        area._render_tail()
    area.add_settled(source)
    whole.add_settled(source)
    for made in (whole, area):
        made.add_settled("after")
    qtbot.waitUntil(lambda: not formulas().busy, timeout=20_000)
    assert area.toPlainText() == whole.toPlainText()
    assert area.toHtml() == whole.toHtml()


def test_a_selection_in_a_growing_table_stays(area: ProseArea) -> None:
    area.set_tail(TABLE[:-30])
    cursor = area.document().find("row 10")
    assert cursor.hasSelection()
    area.setTextCursor(cursor)
    area.set_tail(TABLE)
    area._render_tail()
    area.add_settled(TABLE)
    assert area.textCursor().selectedText() == "row 10"


def test_bars_stand_where_their_quotes_are(area: ProseArea) -> None:
    blocks = show(area, "> a\n>\n> - b\n>   > c\n\n- d\n\n  > e\n  > > f\n")
    found = [(block.text(), quote_places(block.blockFormat())) for block in blocks]
    assert found == [("a", [0]), ("b", [0]), ("c", [0, 1]), ("d", []), ("e", [1]), ("f", [1, 1])]
