"""The line between messages above which the model sees nothing any more."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.i18n import tr
from app.storage.rows import MessageRow
from app.theme import mark
from app.widgets.frames import separator


def boundary_of(rows: Sequence[MessageRow]) -> int | None:
    """The message before which the line is drawn: the first that the latest answer was written from."""
    latest = next((row for row in reversed(rows) if row.role == "assistant"), None)
    if latest is None or latest.seen_from is None:
        return None
    first = next((row.id for row in rows if row.id >= latest.seen_from), None)
    return None if first is None or first == rows[0].id else first


def left_out(rows: Sequence[MessageRow], answer: MessageRow) -> int:
    """How many of the messages before an answer the model had not read for it."""
    if answer.seen_from is None:
        return 0
    return sum(row.id < answer.seen_from for row in rows)


_LEAST_LINE = 64  # pixels for the lines and their distance from the words


class BoundaryLine(QWidget):
    """Words in the middle of a line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        text = tr("The model no longer sees the messages above")
        self.label = QLabel(text, self)
        self.label.setWordWrap(True)
        self.label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.label.setToolTip(
            tr("The chat has outgrown the model's context. Its parameters say what happens then.")
        )
        mark(self.label, muted=True)
        self.setAccessibleName(text)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 14)
        row.setSpacing(12)
        row.addWidget(separator(self), 1)
        row.addWidget(self.label, 0)
        row.addWidget(separator(self), 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The words on one line, unless the window is too narrow for them."""
        super().resizeEvent(event)
        wanted = self.label.fontMetrics().horizontalAdvance(self.label.text()) + 2
        self.label.setFixedWidth(min(wanted, max(1, self.width() - _LEAST_LINE)))
