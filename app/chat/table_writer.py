"""Writes a table of Markdown as a table of the document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextBlockFormat, QTextCursor, QTextFrameFormat, QTextTable, QTextTableFormat

from app.chat.document_end import start_table, thin_block
from app.chat.inline_writer import InlineWriter, Look
from app.theme_colors import Colors

CELL_PADDING = 6  # pixels
_Side = Qt.AlignmentFlag
_ALIGNMENTS = {  # absolute: else Qt turns left and right round in a cell whose text is written from the right
    "text-align:left": _Side.AlignLeft | _Side.AlignAbsolute,
    "text-align:right": _Side.AlignRight | _Side.AlignAbsolute,
    "text-align:center": Qt.AlignmentFlag.AlignHCenter,
}


@dataclass
class Cell:
    """One cell: its text, the text's tokens and where they stand."""

    text: str
    tokens: Sequence[Token]
    alignment: Qt.AlignmentFlag | None


Row = list[Cell]


def is_one_table(tokens: Sequence[Token]) -> bool:
    """Whether the tokens are those of a table and nothing else."""
    kinds = [token.type for token in tokens if token.type.startswith("table")]
    return kinds == ["table_open", "table_close"] and tokens[0].type + tokens[-1].type == "".join(kinds)


def read_table(tokens: Sequence[Token], start: int) -> tuple[list[Row], int]:
    """The rows of the table that begins at `start`, the heading first, and the place of its last token."""
    rows: list[Row] = []
    index = start
    while tokens[index].type != "table_close":
        token = tokens[index]
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            style = str(tokens[index - 1].attrs.get("style", ""))
            rows[-1].append(Cell(token.content, token.children or [], _ALIGNMENTS.get(style)))
        index += 1
    return rows, index


def write_table(
    cursor: QTextCursor,
    rows: list[Row],
    inline: InlineWriter,
    colors: Colors,
    space_above: float,
    space_below: float,
    *,
    right_to_left: bool,
) -> None:
    """Insert the table and leave the cursor in the block behind it."""
    layout = QTextTableFormat()
    layout.setBorder(1)
    layout.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    layout.setBorderBrush(colors.border)
    layout.setBorderCollapse(True)
    layout.setCellPadding(CELL_PADDING)
    layout.setCellSpacing(0)
    layout.setTopMargin(space_above)
    layout.setBottomMargin(space_below)  # Qt does not heed the margin of a block behind a table
    layout.setHeaderRowCount(1)
    if right_to_left:  # Qt keeps the direction, but does not heed it
        layout.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        layout.setAlignment(Qt.AlignmentFlag.AlignRight)
    start_table(cursor)
    table = cursor.insertTable(len(rows), max(len(row) for row in rows), layout)
    for column in range(table.columns()):
        place = table.cellAt(0, column)
        ground = place.format()
        ground.setBackground(colors.surface)
        place.setFormat(ground)
    _fill(table, 0, rows, inline)
    cursor.setPosition(table.lastPosition() + 1)
    cursor.setBlockFormat(thin_block())


def rewrite_rows(table: QTextTable, first: int, rows: list[Row], inline: InlineWriter) -> None:
    """Put `rows` in the place of the table's rows from `first` on: the table has grown."""
    if table.rows() > first:
        table.removeRows(first, table.rows() - first)
    table.appendRows(len(rows))
    _fill(table, first, rows, inline)


def _fill(table: QTextTable, first: int, rows: list[Row], inline: InlineWriter) -> None:
    from_right = table.format().layoutDirection() is Qt.LayoutDirection.RightToLeft
    for number, row in enumerate(rows, first):
        for column, cell in enumerate(row):
            at = table.cellAt(
                number, table.columns() - 1 - column if from_right else column
            ).firstCursorPosition()
            block = QTextBlockFormat()
            if cell.alignment is not None:
                block.setAlignment(cell.alignment)
            elif from_right:  # figures, too, are below the heading of their column
                block.setAlignment(_Side.AlignRight | _Side.AlignAbsolute)
            at.setBlockFormat(block)
            inline.cursor.setPosition(at.position())
            inline.write(cell.tokens, Look(bold=number == 0))
