"""The text of a code block: as high as its lines, in the theme's colours, scrolled sideways only."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QPalette,
    QResizeEvent,
    QSyntaxHighlighter,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from app.chat.code_lexer import Role, Span
from app.chat.sideways import scroll_sideways
from app.theme import mark, monospace, theme

Spans = Callable[[int], list[Span]]  # of a line
TAB = 4  # characters


class CodeView(QPlainTextEdit):
    """Read-only code. It leaves the vertical wheel to the conversation."""

    def __init__(self, spans: Spans) -> None:
        super().__init__()
        mark(self, bare=True, code=True)
        self.setReadOnly(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        document = self.document()
        document.setDocumentMargin(0)
        option = QTextOption(document.defaultTextOption())
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)  # also where a comment is in Arabic
        document.setDefaultTextOption(option)
        self.setViewportMargins(12, 2, 12, 2)
        self.viewport().setAutoFillBackground(False)
        self._colors = _CodeColors(document, spans)
        self._measured = 0  # lines, and how high they are together: lines that are complete never change
        self._height = 0.0
        # Later: while Qt tells of the range, lines may have no height.
        self.horizontalScrollBar().rangeChanged.connect(self.fit, Qt.ConnectionType.QueuedConnection)

    def append_text(self, text: str) -> None:
        """Add text to the end; a selection and the place scrolled to stay."""
        selection = self.textCursor()
        anchor, position = selection.anchor(), selection.position()
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text)
        if anchor != position and max(selection.anchor(), selection.position()) > max(anchor, position):
            selection.setPosition(anchor)  # it reached to the end and would have grown
            selection.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(selection)
        self.fit()

    def look_up(self, spans: Spans) -> None:
        """Ask `spans` for the colours from now on; lines keep theirs until they are coloured anew."""
        self._colors.spans = spans

    def replace_text(self, text: str) -> None:
        """Show another text."""
        self._measured, self._height = 0, 0.0
        self.setPlainText(text)
        self.fit()

    def recolor(self, first: int, end: int) -> None:
        """Show the lines from `first` up to `end` in the colours that are known now."""
        block = self.document().findBlockByNumber(first)
        while block.isValid() and block.blockNumber() < end:
            self._colors.rehighlightBlock(block)
            block = block.next()

    def restyle(self) -> None:
        """Take over the theme's colours and font."""
        font = monospace()
        self.setFont(font)
        self.setTabStopDistance(TAB * self.fontMetrics().horizontalAdvance(" "))
        colors = self.palette()
        colors.setColor(QPalette.ColorRole.Text, theme().colors.text)
        self.setPalette(colors)
        self._colors.take_colors()
        self._measured, self._height = 0, 0.0
        self.fit()

    def fit(self) -> None:
        """Take the height of the lines and of the scroll bar, if there is one."""
        # Lines differ in height: those with characters of another font are higher.
        block = self.document().findBlockByNumber(self._measured)
        while block.isValid() and block.next().isValid():
            self._height += self.blockBoundingRect(block).height()
            self._measured += 1
            block = block.next()
        height = math.ceil(self._height + self.blockBoundingRect(block).height()) + 6
        bar = self.horizontalScrollBar()
        if bar.maximum() > 0:
            height += bar.sizeHint().height()
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Never be scrolled vertically: all lines are in sight."""
        super().resizeEvent(event)
        self.verticalScrollBar().setValue(0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll sideways with a sideways wheel or with Shift; the rest is the conversation's."""
        scroll_sideways(self.horizontalScrollBar(), event)


class _CodeColors(QSyntaxHighlighter):
    """Colours each line as the lexer has found it."""

    def __init__(self, document: QTextDocument, spans: Spans) -> None:
        super().__init__(document)
        self.spans = spans
        self._formats: dict[Role, QTextCharFormat] = {}
        self._read_colors()

    def take_colors(self) -> None:
        """The theme has changed."""
        self._read_colors()
        self.rehighlight()

    def highlightBlock(self, text: str) -> None:
        """Called by Qt for each line that is new or was asked for."""
        for start, length, role in self.spans(self.currentBlock().blockNumber()):
            self.setFormat(start, length, self._formats[role])

    def _read_colors(self) -> None:
        colors = theme().colors
        for role in Role:
            characters = self._formats[role] = QTextCharFormat()
            characters.setForeground(getattr(colors, f"code_{role}"))
