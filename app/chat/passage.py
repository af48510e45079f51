"""Finds sought words in a message that is laid out, and marks them as its selection."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QPlainTextEdit, QTextEdit, QWidget

from app.storage.search_query import spans

_LONGEST = 200_000  # characters that are looked through with foldings; beyond, nothing is marked


def mark_passage(message: QWidget, terms: Sequence[str]) -> QRect | None:
    """Select the first of the words that is found; where it is, in the coordinates of `message`."""
    texts = [text for text in message.findChildren(QWidget) if isinstance(text, QTextEdit | QPlainTextEdit)]
    for text in texts:
        if text.isHidden():
            continue
        shown = text.document().toPlainText()
        found = spans(shown, terms) if len(shown) <= _LONGEST else []
        if found:
            start, length = found[0]
            cursor = text.textCursor()
            cursor.setPosition(start)
            cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
            text.setTextCursor(cursor)
            place = text.cursorRect()
            return QRect(text.viewport().mapTo(message, QPoint(place.x(), place.y())), place.size())
    return None
