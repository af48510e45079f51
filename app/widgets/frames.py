"""What dialogs and panels are divided by: a scrolling area around a page, and thin lines."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.theme import mark


def scrolling(page: QWidget) -> QScrollArea:
    """An area around `page` that scrolls up and down where the window is small; Tab passes over it."""
    area = QScrollArea()
    area.setWidget(page)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def separator(parent: QWidget | None = None) -> QFrame:
    """A thin horizontal line."""
    line = QFrame(parent)
    line.setFixedHeight(1)
    mark(line, separator=True)
    return line
