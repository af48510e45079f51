"""A piece of text in a message: as high as its text, selectable, its links harmless."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QMimeData, QSize, QSizeF, Qt, QUrl
from PySide6.QtGui import (
    QDesktopServices,
    QResizeEvent,
    QTextCursor,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from app.chat.formula_object import CHARACTER, source_of_selection
from app.chat.inline_writer import is_safe
from app.chat.prose_writer import plain_format
from app.i18n import tr
from app.theme import mark, theme
from app.widgets.literal import as_tip
from app.widgets.wrapping import wrap_mode


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

    def createMimeDataFromSelection(self) -> QMimeData:
        """What is copied; formulas as they were written."""
        data = super().createMimeDataFromSelection()
        if CHARACTER in self.textCursor().selectedText():
            data = QMimeData()  # as rich text the formulas would be lost
            data.setText(source_of_selection(self.textCursor()))
        return data

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
        self.setToolTip("" if url.isEmpty() else as_tip(url.toDisplayString()))


class PlainArea(TextArea):
    """Text shown exactly as it was typed."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self.natural_width = 0
        self.setAccessibleName(tr("Text of the message"))
        self.setWordWrapMode(wrap_mode(text))
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


def open_link(url: QUrl) -> bool:
    """Open a link of a message in the user's browser or mail program; only links that can do no harm here."""
    if not is_safe(url.toString()):
        return False
    return QDesktopServices.openUrl(url)
