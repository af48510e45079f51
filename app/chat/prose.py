"""A piece of text in a message: as high as its text, selectable, its links harmless."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QSize, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from app.chat.markdown import plain_format, to_fragment
from app.i18n import tr
from app.theme import mark, theme

SAFE_SCHEMES = ("http", "https", "mailto")
RENDERED_TAIL = 6000  # characters: up to here re-rendering the tail stays well below a frame


class TextArea(QTextBrowser):
    """A read-only text without scroll bars that takes the height it needs."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        mark(self, bare=True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.DefaultContextMenu)
        self.setTabChangesFocus(True)
        self.setUndoRedoEnabled(False)
        self.setOpenLinks(False)
        self.anchorClicked.connect(open_link)
        self.highlighted.connect(self._show_target)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)

    def loadResource(self, type: int, name: QUrl | str) -> Any:
        """Load nothing, ever: a message must not reach the network or the disk."""
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the conversation."""
        event.ignore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the height right when the text wraps anew."""
        super().resizeEvent(event)
        self._fit(self.document().documentLayout().documentSize())

    def sizeHint(self) -> QSize:
        """As wide as the longest line would like to be."""
        return QSize(math.ceil(self.document().idealWidth()) + 2, self.height())

    def _fit(self, size: QSizeF) -> None:
        height = math.ceil(size.height())
        if height != self.height() or height != self.minimumHeight():
            self.setFixedHeight(height)

    def _show_target(self, url: QUrl) -> None:
        self.setToolTip("" if url.isEmpty() else url.toDisplayString())


class ProseArea(TextArea):
    """Settled Markdown, and after it the open tail of an answer that streams in.

    What is settled is never touched again. The tail is rendered anew with each piece of text; while a
    selection reaches into it, or when it is long, new text is only appended to it instead.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._blocks: list[str] = []
        self._tail = ""  # the open tail's source
        self._tail_start = 0  # its position in the document
        self.setAccessibleName(tr("Text of the message"))

    @property
    def blocks(self) -> list[str]:
        """The sources of the settled blocks."""
        return list(self._blocks)

    def add_settled(self, source: str) -> None:
        """Put a block that will not change any more in the place of the tail."""
        self._replace_tail(source)
        self._blocks.append(source)
        self._tail = ""
        self._tail_start = self.document().characterCount() - 1

    def set_tail(self, source: str) -> None:
        """Show the open tail as it is now."""
        if source == self._tail:
            return
        grown = source.startswith(self._tail) and self._tail
        selection = self.textCursor()
        ends = selection.anchor(), selection.position()
        touched = selection.hasSelection() and selection.selectionEnd() > self._tail_start
        if grown and (touched or len(source) > RENDERED_TAIL):
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(source[len(self._tail) :])
            if touched:
                self.setTextCursor(_copy_of(selection, *ends))  # a selection up to the end would have grown
        else:
            self._replace_tail(source)
        self._tail = source

    def render_again(self) -> None:
        """Take over the theme's new colours and font."""
        blocks, tail = self._blocks, self._tail
        self._blocks, self._tail, self._tail_start = [], "", 0
        self.document().clear()
        for block in blocks:
            self.add_settled(block)
        if tail:
            self.set_tail(tail)

    def _replace_tail(self, source: str) -> None:
        cursor = QTextCursor(self.document())
        cursor.beginEditBlock()
        cursor.setPosition(self._tail_start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        fragment = to_fragment(source, self.font(), theme().colors)
        layout, characters = plain_format(self.font(), theme().colors)
        if cursor.block().length() > 1:
            cursor.insertBlock(layout, characters)
        else:
            cursor.setBlockFormat(layout)  # it may still be that of a list's entry
        separator = cursor.position()
        cursor.insertFragment(fragment)
        if self._tail_start > 0:
            self._remove_gap(separator)
        cursor.endEditBlock()

    def _remove_gap(self, position: int) -> None:
        """Lists and tables leave the block they are inserted into empty, before themselves."""
        block = self.document().findBlock(position)
        if block.length() > 1 or not block.next().isValid():
            return
        cursor = QTextCursor(block)
        if block.next().textList() is not None:
            cursor.deleteChar()
        else:
            layout = block.blockFormat()
            layout.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
            layout.setBottomMargin(0)
            cursor.setBlockFormat(layout)


class PlainArea(TextArea):
    """Text shown exactly as it was typed."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self.natural_width = 0
        self.setAccessibleName(tr("Text of the message"))
        self.render_again()

    def render_again(self) -> None:
        """Take over the theme's new colours and font."""
        self.document().clear()
        layout, characters = plain_format(self.font(), theme().colors)
        layout.setBottomMargin(0)
        cursor = QTextCursor(self.document())
        cursor.setBlockFormat(layout)
        cursor.insertText(self._text, characters)
        document = self.document()
        document.setTextWidth(-1)
        self.natural_width = math.ceil(document.idealWidth()) + 2  # of the longest line, in pixels
        document.setTextWidth(self.viewport().width())


def _copy_of(cursor: QTextCursor, anchor: int, position: int) -> QTextCursor:
    copy = QTextCursor(cursor)
    copy.setPosition(anchor)
    copy.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
    return copy


def open_link(url: QUrl) -> bool:
    """Open a link of a message in the user's browser or mail program; only links that can do no harm here."""
    if url.scheme().lower() not in SAFE_SCHEMES:
        return False
    return QDesktopServices.openUrl(url)
