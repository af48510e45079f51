"""Says something through the user's screen reader, if there is one."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent


def announce(owner: QObject, text: str) -> None:
    """Say a text in the name of a widget, politely: after what is being said."""
    event = QAccessibleAnnouncementEvent(owner, text)
    event.setPoliteness(QAccessible.AnnouncementPoliteness.Polite)
    QAccessible.updateAccessibility(event)
