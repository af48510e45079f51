"""Technical details to read and copy, as dialogs about faults show them."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.theme import theme


class DetailsText(QPlainTextEdit):
    """Read-only text in a fixed-width font; Tab leads out of it."""

    def __init__(self, text: str, name: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        theme().use_monospace(self)
        self.setAccessibleName(name)
        self.setMinimumHeight(self.fontMetrics().height() * 8)

    def show_columns(self, columns: int, *, rows: int) -> None:
        """Be large enough for so many characters and lines, if the screen is."""
        beside = self.verticalScrollBar().sizeHint().width() + 2 * (
            self.frameWidth() + round(self.document().documentMargin())
        )
        room = self.screen().availableSize()
        width = round(self.fontMetrics().horizontalAdvance("0") * columns) + beside
        self.setMinimumWidth(min(width, round(room.width() * 0.85)))
        self.setMinimumHeight(min(self.fontMetrics().height() * rows, room.height() // 2))

    def copy_all(self) -> None:
        """Put all of it on the clipboard."""
        QGuiApplication.clipboard().setText(self.toPlainText())
