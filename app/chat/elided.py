"""One line of text that loses its end when there is no room, with the whole text as its tool tip."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget


class ElidedText(QLabel):
    """Like a QLabel with plain text; its width is what the layout gives."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show another text."""
        line = " ".join(text.split())
        super().setText(line)
        self.setToolTip(line)

    def minimumSizeHint(self) -> QSize:
        """Room for a few characters."""
        return QSize(self.fontMetrics().averageCharWidth() * 8, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint as much as fits."""
        painter = QPainter(self)
        area = self.contentsRect()
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, area.width())
        flags = int(self.alignment() | Qt.TextFlag.TextSingleLine)
        self.style().drawItemText(
            painter, area, flags, self.palette(), self.isEnabled(), shown, self.foregroundRole()
        )
