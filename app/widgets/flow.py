"""A layout that puts widgets side by side and goes on below where a line is full, as words in a text."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QPoint, QRect, QSize
from PySide6.QtWidgets import QLayoutItem, QWidget

from app.widgets.item_layout import ItemLayout


class FlowLayout(ItemLayout):
    """Lines of widgets in their own sizes, narrower only where the line itself is; `right`: at its end."""

    def __init__(self, parent: QWidget | None = None, *, spacing: int = 6, right: bool = False) -> None:
        super().__init__(parent, spacing=spacing)
        self._right = right
        self.setContentsMargins(QMargins())

    def heightForWidth(self, width: int) -> int:
        """The height of all lines."""
        lines = self._lines(width)
        return sum(height for _, height in lines) + self.spacing() * max(0, len(lines) - 1)

    def sizeHint(self) -> QSize:
        """As wide as the widest widget would like to be; the height follows from the width."""
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.sizeHint())
        return size

    def minimumSize(self) -> QSize:
        """Room for the narrowest state of every widget."""
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def setGeometry(self, rect: QRect) -> None:
        """Place the widgets."""
        super().setGeometry(rect)
        top = rect.top()
        for items, height in self._lines(rect.width()):
            widths = [min(item.sizeHint().width(), rect.width()) for item in items]
            used = sum(widths) + self.spacing() * (len(widths) - 1)
            left = rect.left() + (max(0, rect.width() - used) if self._right else 0)
            for item, width in zip(items, widths, strict=True):
                item.setGeometry(QRect(QPoint(left, top), QSize(width, height)))
                left += width + self.spacing()
            top += height + self.spacing()

    def line_width(self) -> int:
        """The width of all widgets side by side."""
        widths = [item.sizeHint().width() for item in self._items]
        return sum(widths) + self.spacing() * max(0, len(widths) - 1)

    def _lines(self, width: int) -> list[tuple[list[QLayoutItem], int]]:
        """The widgets of each line, and its height."""
        lines: list[tuple[list[QLayoutItem], int]] = []
        used = 0
        for item in self._items:
            if item.isEmpty():  # hidden
                continue
            size = item.sizeHint()
            if not lines or used + self.spacing() + size.width() > width:
                lines.append(([item], size.height()))
                used = size.width()
            else:
                items, height = lines[-1]
                lines[-1] = ([*items, item], max(height, size.height()))
                used += self.spacing() + size.width()
        return lines
