"""One line of text that is cut where there is no room, with the whole text as its tool tip."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.widgets.literal import as_tip


class ElidedText(QLabel):
    """Like a QLabel with plain text; its width is what the layout gives.

    `middle`: what does not fit is left out in the middle instead of at the end, as paths are read.
    """

    def __init__(self, text: str = "", parent: QWidget | None = None, *, middle: bool = False) -> None:
        super().__init__(parent)
        self._mode = Qt.TextElideMode.ElideMiddle if middle else Qt.TextElideMode.ElideRight
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show another text."""
        line = " ".join(text.splitlines())
        super().setText(line)
        self.setToolTip(as_tip(line))

    def minimumSizeHint(self) -> QSize:
        """Room for a few characters."""
        return QSize(self.fontMetrics().averageCharWidth() * 8, super().minimumSizeHint().height())

    def shown_text(self) -> str:
        """As much of the text as fits the present width."""
        return self.fontMetrics().elidedText(self.text(), self._mode, self.contentsRect().width())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint as much as fits."""
        painter = QPainter(self)
        flags = int(self.alignment() | Qt.TextFlag.TextSingleLine)
        self.style().drawItemText(
            painter,
            self.contentsRect(),
            flags,
            self.palette(),
            self.isEnabled(),
            self.shown_text(),
            self.foregroundRole(),
        )
