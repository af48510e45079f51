"""A bar of amounts side by side against what there is: memory needs, graphics memory."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.theme import theme

_STEP = 0.28  # how much paler each segment is than the one before it
_PALEST = 0.35


class AmountBar(QWidget):
    """Segments of `amounts` from the left; `available` is the whole track, or a mark where it is exceeded."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._amounts: tuple[float, ...] = ()
        self._available = 0.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def set_amounts(self, amounts: Sequence[float], available: float, description: str) -> None:
        """Show `amounts`, which belong together, against `available`; `description` is for screen readers."""
        self._amounts, self._available = tuple(amounts), available
        self.setAccessibleName(description)
        self.setToolTip(description)
        self.update()

    def sizeHint(self) -> QSize:
        """As high as a line's lower case letters."""
        return QSize(self.fontMetrics().averageCharWidth() * 24, max(10, self.fontMetrics().xHeight() + 4))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the track, the segments, and in the warning colour what goes beyond."""
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        shape = QPainterPath()
        shape.addRoundedRect(area, area.height() / 2, area.height() / 2)
        painter.setClipPath(shape)
        painter.fillRect(area, colors.track)
        total = sum(self._amounts)
        scale = area.width() / max(total, self._available, 1.0)
        left = 0.0
        for index, amount in enumerate(self._amounts):
            width = amount * scale
            painter.fillRect(QRectF(left, 0, width, area.height()), _shade(colors.accent, index))
            left += width
        limit = self._available * scale
        if total > self._available:
            painter.fillRect(QRectF(limit, 0, area.width() - limit, area.height()), colors.error)
            painter.fillRect(QRectF(limit - 1, 0, 2, area.height()), colors.base)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(colors.edge)  # only high contrast has one
        radius = area.height() / 2
        painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)


def _shade(color: QColor, index: int) -> QColor:
    shade = QColor(color)
    shade.setAlphaF(max(_PALEST, 1 - _STEP * index))
    return shade
