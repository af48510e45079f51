"""The line at the upper edge of a conversation: it stays there while what is above it changes its height.

Formulas that are drawn late, another font or width, and messages that get a strip below their text do that.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.chat.message import AssistantMessage
from app.chat.message_view import MessageView
from app.chat.prose import ProseArea


class ReadingPlace:
    """Made when the reader has scrolled; `scroll_value` tells later how far down the same line is."""

    def __init__(self, content: QWidget, views: Sequence[MessageView], top: int) -> None:
        self._content = content
        self._widget: QWidget | None = None
        self._line: QTextCursor | None = None  # in a long text
        for view in views:
            if _bottom(view, content) > top:
                self._widget = self._part_of(view, top)
                break
        self._below = self._y() - top

    def scroll_value(self) -> int | None:
        """What the scroll bar must stand at for the line to be at the upper edge; None if it is gone."""
        if self._widget is None or not isValid(self._widget) or not self._content.isAncestorOf(self._widget):
            return None
        return self._y() - self._below

    def _part_of(self, view: MessageView, top: int) -> QWidget:
        if not isinstance(view, AssistantMessage):
            return view
        for area in view.body.areas:
            if _bottom(area, self._content) > top:
                if isinstance(area, ProseArea):
                    inside = max(0, top - area.mapTo(self._content, QPoint(0, 0)).y())
                    line = area.cursorForPosition(QPoint(0, inside))
                    self._line = line if area.is_settled(line.position()) else None
                return area
        return view

    def _y(self) -> int:
        if self._widget is None:
            return 0
        inside = 0
        if self._line is not None and isinstance(self._widget, ProseArea):
            inside = self._widget.cursorRect(self._line).top()
        return self._widget.mapTo(self._content, QPoint(0, inside)).y()


def _bottom(widget: QWidget, content: QWidget) -> int:
    return widget.mapTo(content, QPoint(0, widget.height())).y()
