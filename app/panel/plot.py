"""What the panel's small plots share: an area with a base line, the highest value above it, numbers below."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.answers import short_number
from app.i18n import tr
from app.theme import theme
from app.widgets.roles import set_role

_SIDE = 4.0


class Plot(QWidget):
    """A plot of speeds from zero up to `highest`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.highest = 0.0
        set_role(self, QAccessible.Role.Chart)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """Six lines: four for the curve."""
        line = self.fontMetrics().height()
        return QSize(line * 12, line * 6)

    def minimumSizeHint(self) -> QSize:
        """As high, but narrower."""
        line = self.fontMetrics().height()
        return QSize(line * 6, line * 6)

    def area(self) -> QRectF:
        """Where the values are."""
        line = self.fontMetrics().height()
        return QRectF(
            _SIDE, line + 4, max(1.0, self.width() - 2 * _SIDE), max(1.0, self.height() - 2 * line - 8)
        )

    def height_of(self, value: float) -> float:
        """A value's distance from the base line in pixels."""
        return self.area().height() * value / self.highest if self.highest > 0 else 0.0

    def paint_frame(self, painter: QPainter) -> None:
        """Paint the base line, the line of the highest value and its figure."""
        colors, area = theme().colors, self.area()
        painter.setPen(QPen(colors.border, 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.setPen(QPen(colors.border, 1, Qt.PenStyle.DotLine))
        painter.drawLine(area.topLeft(), area.topRight())
        painter.setPen(colors.muted)
        text = tr("{rate} tokens/s", rate=short_number(self.highest))
        painter.drawText(self._line(0), Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, text)

    def below(self) -> QRectF:
        """The line for numbers below the values."""
        return self._line(self.area().bottom() + 3)

    def _line(self, top: float) -> QRectF:
        return QRectF(_SIDE, top, self.width() - 2 * _SIDE, self.fontMetrics().height())
