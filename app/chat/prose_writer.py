"""Writes Markdown's tokens to the end of a text document, in the theme's colours."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextFormat,
    QTextLength,
    QTextList,
    QTextListFormat,
    QTextTable,
)

from app.chat.document_end import is_started, leave_table, start_block
from app.chat.formula_object import formula_format
from app.chat.inline_writer import InlineWriter, Look
from app.chat.markdown import parse
from app.chat.table_writer import Row, is_one_table, read_table, rewrite_rows, write_table
from app.theme_colors import Colors

LINE_GAP = 0.35  # between lines, of a line's height: easier to read than Qt's 0
QUOTE_INDENT = 18  # pixels
QUOTE_PLACES = QTextFormat.Property.UserProperty.value + 21  # see `quote_places`
_HEADING_SCALE = {1: 1.45, 2: 1.25, 3: 1.1}
_BULLETS = (
    QTextListFormat.Style.ListDisc,
    QTextListFormat.Style.ListCircle,
    QTextListFormat.Style.ListSquare,
)


def plain_format(font: QFont, colors: Colors) -> tuple[QTextBlockFormat, QTextCharFormat]:
    """How a paragraph looks; also of text that is not Markdown, or not yet."""
    block = QTextBlockFormat()
    # Not in proportion to the line: lines with a formula are high enough.
    between = round(QFontMetricsF(font).height() * LINE_GAP)
    block.setLineHeight(between, QTextBlockFormat.LineHeightTypes.LineDistanceHeight.value)
    characters = QTextCharFormat()
    characters.setForeground(colors.text)
    characters.setFont(font)
    return block, characters


def quote_places(block: QTextBlockFormat) -> list[int]:
    """Of each quote that a block is in, from the outermost, how many lists are around it."""
    return [int(lists) for lists in str(block.property(QUOTE_PLACES) or "").split()]


def is_right_to_left(text: str) -> bool:
    """Whether a paragraph with this text is read from the right: its first letter decides."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


@dataclass
class _List:
    made: QTextList | None  # made with its first item
    format: QTextListFormat


class ProseWriter:
    """Appends Markdown to a document, one piece after the other."""

    def __init__(self, cursor: QTextCursor, font: QFont, colors: Colors) -> None:
        self._cursor, self._font, self._colors = cursor, font, colors
        self._gap = font.pointSizeF() * 1.05  # between paragraphs, in pixels
        self._block, self._plain = plain_format(font, colors)
        self._inline = InlineWriter(cursor, font, colors)
        self.undrawn = self._inline.undrawn
        self.wrote_one_table = False  # and nothing else
        self._lists: list[_List] = []
        self._quotes: list[int] = []  # of each open quote how many lists are around it
        self._item_begins = False  # the next block is the first of a list's item
        self._heading = 0

    def write(self, source: str) -> None:
        """Append a piece of Markdown."""
        tokens = parse(source)
        self.wrote_one_table = is_one_table(tokens)
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.type == "table_open":
                rows, index = read_table(tokens, index)
                self._write_table(rows)
            else:
                self._take(token)
            index += 1

    def write_rows(self, table: QTextTable, source: str, kept: int) -> bool:
        """Write what has come to a table: its source's lines from `kept` on, the first two being its heading.

        False, and nothing is written, if the source is more than a table.
        """
        lines = source.split("\n")
        tokens = parse("\n".join([*lines[:2], *lines[kept:]]))
        if not is_one_table(tokens):
            return False
        rows, _ = read_table(tokens, 0)
        rewrite_rows(table, kept - 1, rows[1:], self._inline)
        return True

    def _take(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._heading = int(token.tag[1:])
            case "heading_close":
                self._heading = 0
            case "inline":
                self._paragraph(token)
            case "bullet_list_open" | "ordered_list_open":
                self._open_list(token)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._item_begins = False
            case "list_item_open":
                if self._item_begins:
                    self._begin()  # the item before was empty
                self._item_begins = True
            case "list_item_close":
                if self._item_begins:
                    self._begin()
            case "blockquote_open":
                self._quotes.append(len(self._lists))
            case "blockquote_close":
                self._quotes.pop()
            case "fence" | "code_block":
                self._code(token.content.rstrip("\n"))
            case "math_open":
                self._code(token.markup + "\n" + token.content)
            case "math_block":
                self._formula(token)
            case "hr":
                self._rule()

    def _paragraph(self, token: Token) -> None:
        text = token.content
        task = ""
        if self._item_begins and text[:4].lower() in ("[ ] ", "[x] "):
            task = text[1].lower()
        self._begin(text=text, task=task)
        look = Look(muted=bool(self._quotes))
        if self._heading:
            look.bold = True
            look.scale = _HEADING_SCALE.get(self._heading, 1.0)
        self._inline.write(token.children or [], look, skip=4 if task else 0)

    def _begin(self, *, text: str = "", task: str = "", joined: bool = False) -> None:
        """Begin a block: a paragraph, a line of code, an item of a list."""
        layout = QTextBlockFormat(self._block)
        if self._heading:
            layout.setHeadingLevel(self._heading)
        if self._quotes:
            layout.setProperty(QTextFormat.Property.BlockQuoteLevel, len(self._quotes))
            layout.setProperty(QUOTE_PLACES, " ".join(map(str, self._quotes)))
            margin = QUOTE_INDENT * len(self._quotes)
            if is_right_to_left(text):
                layout.setRightMargin(margin)
            else:
                layout.setLeftMargin(margin)
        first_of_item, self._item_begins = self._item_begins, False
        if self._lists and not first_of_item:
            layout.setIndent(len(self._lists))
        if task:
            checked, open_ = QTextBlockFormat.MarkerType.Checked, QTextBlockFormat.MarkerType.Unchecked
            layout.setMarker(checked if task == "x" else open_)
        layout.setTopMargin(0 if joined else self._space_above(first_of_item))
        start_block(self._cursor, layout, self._plain)
        if self._lists and first_of_item:
            self._add_to_list(self._lists[-1])

    def _space_above(self, is_item: bool) -> float:
        before = self._cursor.block()
        if not is_started(before.blockFormat()):
            before = before.previous()
        if not before.isValid():
            return 0.0
        after_list = before.textList() is not None or before.blockFormat().indent() > 0
        if self._lists and (is_item or after_list) and (after_list or len(self._lists) > 1):
            return self._gap * 0.35
        return self._gap * (1.4 if self._heading else 1.0)

    def _open_list(self, token: Token) -> None:
        made = QTextListFormat()
        depth = len(self._lists)
        if token.type == "ordered_list_open":
            made.setStyle(QTextListFormat.Style.ListDecimal)
            made.setStart(int(token.attrs.get("start", 1)))
        else:
            made.setStyle(_BULLETS[min(depth, len(_BULLETS) - 1)])
        made.setIndent(depth + 1)
        self._lists.append(_List(None, made))

    def _add_to_list(self, entry: _List) -> None:
        if entry.made is None:
            entry.made = self._cursor.createList(entry.format)
        else:
            entry.made.add(self._cursor.block())

    def _code(self, code: str) -> None:
        for number, line in enumerate(code.split("\n")):
            self._begin(joined=number > 0)
            layout = self._cursor.blockFormat()
            layout.setBackground(self._colors.code)
            layout.setProperty(QTextFormat.Property.BlockCodeFence, "`")
            self._cursor.setBlockFormat(layout)
            self._inline.write_code(line)

    def _formula(self, token: Token) -> None:
        self._begin()
        characters = formula_format(self._plain, token.content, token.markup)
        layout = self._cursor.blockFormat()
        if not self._lists and not self._quotes:
            layout.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._cursor.setBlockFormat(layout)
        self._inline.write_formula(characters)

    def _rule(self) -> None:
        leave_table(self._cursor)
        self._begin()
        layout = self._cursor.blockFormat()
        full = QTextLength(QTextLength.Type.PercentageLength, 100)
        layout.setProperty(QTextFormat.Property.BlockTrailingHorizontalRulerWidth, full)
        layout.setBackground(self._colors.border)  # only the line has it
        layout.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self._cursor.setBlockFormat(layout)

    def _write_table(self, rows: list[Row]) -> None:
        space = self._space_above(False)
        from_right = is_right_to_left(" ".join(cell.text for cell in rows[0]))
        write_table(
            self._cursor, rows, self._inline, self._colors, space, self._gap, right_to_left=from_right
        )
