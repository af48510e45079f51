"""A small plot of measured times over token counts, growing while a calibration runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.answers import token_words
from app.i18n import tr, tr_count
from app.theme import theme
from app.widgets.roles import set_role
from engine.units import format_seconds

Points = Sequence[tuple[int, float]]  # token count, seconds
_MARGIN = 6
_WRAPPED = int(Qt.AlignmentFlag.AlignLeft | Qt.TextFlag.TextWordWrap)


class CurvePlot(QWidget):
    """Curves over 1, 2, 4, … tokens (each doubling the same distance), times from zero up.

    `curves` maps a name to its points; the colours are those of the places, the CPU's first.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._curves: Mapping[str, Points] = {}
        set_role(self, QAccessible.Role.Chart)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme().changed.connect(self.update)

    def set_curves(self, curves: Mapping[str, Points]) -> None:
        """Show `curves`."""
        self._curves = {name: tuple(points) for name, points in curves.items() if points}
        texts = [
            tr("{name}: {points}", name=name, points=", ".join(_point_text(*point) for point in points))
            for name, points in self._curves.items()
        ]
        self.setAccessibleName(tr("Measured times. {curves}", curves=". ".join(texts)))
        self.update()

    def sizeHint(self) -> QSize:
        """Room for a legend and a curve that can be read."""
        line = self.fontMetrics().height()
        return QSize(line * 18, line * 9)

    def minimumSizeHint(self) -> QSize:
        """Small, but still a curve."""
        return self.sizeHint() * 0.6

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the axes, the curves and their names."""
        if not self._curves:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors = theme().colors
        line = self.fontMetrics().height()
        highest = max(seconds for points in self._curves.values() for _, seconds in points) or 1.0
        most = max(tokens for points in self._curves.values() for tokens, _ in points)
        width = self.width() - 2 * _MARGIN
        names = [self._legend(name, points) for name, points in self._curves.items()]
        heights = [self._text_height(text, width) for text in names]
        top = sum(heights) + line * 0.6
        area = QRectF(_MARGIN, top, self.width() - 2 * _MARGIN, self.height() - top - line * 1.4)
        painter.setPen(QPen(colors.border, 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        painter.drawLine(area.topLeft(), area.bottomLeft())
        self._paint_ticks(painter, area, most)
        shades = (colors.cpu, colors.gpu, colors.streamed)
        for index, points in enumerate(self._curves.values()):
            color = shades[index % len(shades)]
            legend = QRectF(_MARGIN, sum(heights[:index]), width, heights[index])
            painter.setPen(color)
            painter.drawText(legend, _WRAPPED, names[index])
            placed = [_placed(area, tokens, seconds, most, highest) for tokens, seconds in points]
            _paint_curve(painter, placed, color)

    @staticmethod
    def _legend(name: str, points: Points) -> str:
        return tr("{name}: up to {time}", name=name, time=format_seconds(max(time for _, time in points)))

    def _text_height(self, text: str, width: int) -> int:
        return self.fontMetrics().boundingRect(QRect(0, 0, width, self.height()), _WRAPPED, text).height()

    def _paint_ticks(self, painter: QPainter, area: QRectF, most: int) -> None:
        painter.setPen(theme().colors.muted)
        line = self.fontMetrics().height()
        text = token_words(most)
        end = QRectF(area.left(), area.bottom() + 2, area.width(), line * 1.3)
        free = area.right() - self.fontMetrics().horizontalAdvance(text) - line / 2  # left of the last label
        for power in range(int(log2(most)) + 1 if most > 1 else 1):
            x = _placed(area, 2**power, 0, most, 1).x()
            label = str(2**power)
            box = QRectF(x - line * 2, area.bottom() + 2, line * 4, line * 1.3)
            if x + self.fontMetrics().horizontalAdvance(label) / 2 < free:
                painter.drawText(box, Qt.AlignmentFlag.AlignHCenter, label)
        painter.drawText(end, Qt.AlignmentFlag.AlignRight, text)


def _placed(area: QRectF, tokens: int, seconds: float, most: int, highest: float) -> QPointF:
    across = log2(tokens) / log2(most) if most > 1 else 0.5
    inner = area.adjusted(_MARGIN, _MARGIN, -_MARGIN, 0)
    return QPointF(inner.left() + across * inner.width(), inner.bottom() - seconds / highest * inner.height())


def _paint_curve(painter: QPainter, points: list[QPointF], color: QColor) -> None:
    painter.setPen(QPen(color, 2))
    painter.drawPolyline(points)
    painter.setBrush(color)
    for point in points:
        painter.drawEllipse(point, 3, 3)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def _point_text(tokens: int, seconds: float) -> str:
    return tr_count("{count} token {time}", "{count} tokens {time}", tokens, time=format_seconds(seconds))
