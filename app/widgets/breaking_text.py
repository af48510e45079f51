"""Running text that can be selected and breaks its lines anywhere: a long file name never makes it wider."""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QTextDocument, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextEdit, QWidget

from app.theme import mark

_WRAP = QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
MOST_CHARACTERS = 70  # that a line would like to have
_LEAST_CHARACTERS = 12  # that it must have


class BreakingText(QTextEdit):
    """Plain text that is only read. A QLabel cannot be narrower than its longest word, this can.

    `most`: characters that a line of a long text would like to have.
    """

    def __init__(self, parent: QWidget | None = None, *, most: int = MOST_CHARACTERS) -> None:
        super().__init__(parent)
        mark(self, bare=True)
        self._most = most
        self._padding = 0
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(_WRAP)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.document().setDocumentMargin(0)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @property
    def text(self) -> str:
        """What it says."""
        return self.toPlainText()

    def set_text(self, text: str) -> None:
        """Say something else."""
        if text != self.text:
            self.setPlainText(text)
            self.updateGeometry()

    def set_padding(self, pixels: int) -> None:
        """Leave room above and below the lines."""
        if pixels != self._padding:
            self._padding = pixels
            self.setViewportMargins(0, pixels, 0, pixels)
            self.updateGeometry()

    def heightForWidth(self, width: int) -> int:
        """The height of all lines, with the room above and below."""
        measured = self._measured()
        measured.setTextWidth(width)
        return math.ceil(measured.size().height()) + 2 * self._padding

    def sizeHint(self) -> QSize:
        """In one line, or in lines of a length that is good to read."""
        most = self.fontMetrics().averageCharWidth() * self._most
        width = min(most, math.ceil(self._measured().idealWidth()) + 1)
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """A few characters wide; the height follows from the width."""
        metrics = self.fontMetrics()
        return QSize(metrics.averageCharWidth() * _LEAST_CHARACTERS, metrics.height() + 2 * self._padding)

    def changeEvent(self, event: QEvent) -> None:
        """The lines are others in another font."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self.updateGeometry()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to what is around it."""
        event.ignore()

    def _measured(self) -> QTextDocument:
        """The text once more: measuring must not lay out anew what is shown."""
        document = QTextDocument()
        document.setDefaultFont(self.font())
        document.setDocumentMargin(0)
        document.setDefaultTextOption(self.document().defaultTextOption())
        document.setPlainText(self.text)
        return document
