"""The Markdown of a message: settled text that is never touched again, and the open tail behind it."""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QPoint, QRectF, Qt, QTimer
from PySide6.QtGui import QPainter, QPaintEvent, QTextBlock, QTextBlockFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QWidget

from app.chat.formula_watch import FormulaWatch
from app.chat.prose_writer import QUOTE_INDENT, ProseWriter, quote_places
from app.chat.selections import moved, units
from app.chat.text_area import TextArea
from app.i18n import tr
from app.theme import theme
from app.widgets.wrapping import wrap_mode

INDENT = 2.2  # of a list, in widths of an "m"
BAR = 3  # pixels: the width of the bar beside a quote
QUICK = 3  # milliseconds: a tail that renders as fast as this is always rendered at once
REST = 6  # rendering the tail takes at most one part in `REST` + 1 of the time


class ProseArea(TextArea):
    """Shows settled Markdown, and after it the open tail of an answer that streams in.

    The tail is rendered anew as it grows, the longer that takes the less often.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._blocks: list[str] = []
        self._tail = ""  # the open tail's source
        self._table = ""  # the same as far as it is rendered, if it is a table
        self._tail_start = QTextCursor(self.document())
        self._tail_start.setKeepPositionOnInsert(True)
        self._settled_end = QTextBlockFormat()  # of the block that the tail is rendered behind
        self._quotes = False  # whether there may be bars to paint
        self._since = QElapsedTimer()  # when the tail was rendered
        self._cost = 0  # milliseconds that this took
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._render_tail)
        self.setAccessibleName(tr("Text of the message"))
        self._watch = FormulaWatch(self.document(), self)
        self._set_indent()

    @property
    def blocks(self) -> list[str]:
        """The sources of the settled blocks."""
        return list(self._blocks)

    def is_settled(self, position: int) -> bool:
        """Whether a position of the document lies before the open tail."""
        return position < self._tail_start.position()

    def add_settled(self, source: str) -> None:
        """Put a block that will not change any more in the place of the tail."""
        self._later.stop()
        self._replace_tail(source)
        self._blocks.append(source)
        self._tail = self._table = ""
        self._cost = 0
        self._tail_start.movePosition(QTextCursor.MoveOperation.End)
        self._settled_end = self._tail_start.blockFormat()

    def set_tail(self, source: str) -> None:
        """Show the open tail as it is now, soon."""
        if source == self._tail:
            return
        self._tail = source
        wait = self._cost * REST - (self._since.elapsed() if self._since.isValid() else 0)
        if self._later.isActive():
            return
        if self._cost <= QUICK or wait <= 0:
            self._render_tail()
        else:
            self._later.start(wait)

    def drop_tail(self) -> None:
        """Show the settled text alone: the tail goes on elsewhere."""
        self._later.stop()
        self._replace_tail("")
        self._tail = self._table = ""

    def render_again(self) -> None:
        """Take over the theme's new colours and font."""
        blocks, tail = self._blocks, self._tail
        self._later.stop()
        self._blocks, self._tail, self._table, self._settled_end = [], "", "", QTextBlockFormat()
        self.document().clear()
        self._set_indent()
        for block in blocks:
            self.add_settled(block)
        if tail:
            self.set_tail(tail)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the bars of quotes beside them."""
        if self._quotes:
            painter = QPainter(self.viewport())
            self._paint_bars(painter, event)
            painter.end()
        super().paintEvent(event)

    def _render_tail(self) -> None:
        self._since.start()
        self._replace_tail(self._tail)
        self._cost = self._since.elapsed()

    def _replace_tail(self, source: str) -> None:
        selection = self.textCursor()
        start = self._tail_start.position()
        touched = selection.hasSelection() and selection.selectionEnd() > start
        anchor, position = selection.anchor(), selection.position()
        before = self._tail_text() if touched else ""
        if not self._extend_table(source):
            self._write_tail(source)
        if touched:
            after = self._tail_text()
            selection.setPosition(start + moved(anchor - start, before, after))
            place = start + moved(position - start, before, after)
            selection.setPosition(place, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(selection)

    def _write_tail(self, source: str) -> None:
        mode = wrap_mode(source)
        if mode is QTextOption.WrapMode.WrapAnywhere:
            self.setWordWrapMode(mode)
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        cursor.setPosition(self._tail_start.position())
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        cursor.setBlockFormat(self._settled_end)  # an empty block takes over the format of what is removed
        writer = ProseWriter(cursor, self.font(), theme().colors)
        writer.write(source)
        cursor.endEditBlock()
        self._quotes = self._quotes or ">" in source
        self._watch.add(writer.undrawn)
        self._table = source if writer.wrote_one_table else ""

    def _extend_table(self, source: str) -> bool:
        """Write only the new rows if the tail is a table that has grown; False if it is not."""
        kept = self._table.count("\n")  # lines that were complete
        if kept < 2 or not source.startswith(self._table[: self._table.rindex("\n") + 1]):
            return False
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        table = QTextCursor(cursor.block().previous()).currentTable()
        writer = ProseWriter(cursor, self.font(), theme().colors)
        cursor.beginEditBlock()
        extended = table is not None and writer.write_rows(table, source, kept)
        cursor.endEditBlock()
        if extended:
            self._watch.add(writer.undrawn)
            self._table = source
        return extended

    def _tail_text(self) -> str:
        cursor = QTextCursor(self._tail_start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        return units(cursor.selectedText())

    def _set_indent(self) -> None:
        self.document().setIndentWidth(self.fontMetrics().horizontalAdvance("m") * INDENT)

    def _paint_bars(self, painter: QPainter, event: QPaintEvent) -> None:
        layout = self.document().documentLayout()
        top, bottom = event.rect().top(), event.rect().bottom()
        block = self.cursorForPosition(QPoint(0, top)).block()
        above = block.previous()
        block = above if above.isValid() else block
        while block.isValid():
            place = layout.blockBoundingRect(block)
            if place.top() > bottom:
                break
            self._paint_bars_of(painter, block, place)
            block = block.next()

    def _paint_bars_of(self, painter: QPainter, block: QTextBlock, place: QRectF) -> None:
        places = quote_places(block.blockFormat())
        before = block.previous()
        places_before = quote_places(before.blockFormat())
        above = self.document().documentLayout().blockBoundingRect(before).bottom() if before.isValid() else 0
        for number, lists in enumerate(places):
            left = lists * self.document().indentWidth() + number * QUOTE_INDENT + 2
            if block.textDirection() is Qt.LayoutDirection.RightToLeft:
                left = self.viewport().width() - left - BAR
            # Through the space between paragraphs of the same quote.
            top = above if places_before[: number + 1] == places[: number + 1] else place.top()
            bar = QRectF(left, top, BAR, place.bottom() - top)
            painter.fillRect(bar, theme().colors.border)
