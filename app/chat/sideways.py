"""Scrolling sideways inside a conversation, which keeps the vertical wheel for itself."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QScrollBar


def scroll_sideways(bar: QScrollBar, event: QWheelEvent) -> None:
    """Scroll with a sideways wheel or with Shift; leave every other turn to the conversation."""
    delta = event.angleDelta()
    sideways = abs(delta.x()) > abs(delta.y())
    if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and not sideways:
        delta, sideways = QPoint(delta.y(), 0), True
    if not sideways or bar.maximum() == 0:
        event.ignore()
        return
    bar.setValue(bar.value() - delta.x())
    event.accept()
