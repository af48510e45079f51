"""The speed within one answer, from its first token to its last."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from app.answers import short_number, token_words
from app.i18n import tr
from app.panel.plot import Plot
from app.theme import theme
from engine.pace import Pace

_STRETCHES = 32  # as many as can be told apart; and each is long enough to be calm
_LEAST = 3  # below that there is no curve


class PacePlot(Plot):
    """A curve of tokens per second, and a dashed line at the average."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rates: tuple[float, ...] = ()
        self._average = 0.0
        self._tokens = 0

    @property
    def rates(self) -> tuple[float, ...]:
        """What is drawn."""
        return self._rates

    def show_pace(self, pace: Pace, average: float) -> None:
        """Show an answer; one too short for a curve leaves the plot hidden."""
        self._rates = pace.rates(_STRETCHES)
        self._tokens = pace.stride * len(pace.seconds)
        self._average = average
        self.highest = max((*self._rates, average), default=0.0)
        enough = len(self._rates) >= _LEAST
        if self.isHidden() is enough:
            self.setVisible(enough)
        if enough:
            self.setAccessibleName(self.words())
            self.setToolTip(self.words())
            self.update()

    def words(self) -> str:
        """The curve in a sentence."""
        return tr(
            "Within the answer: from {least} to {most} tokens per second, {first} at its beginning, "
            "{last} at its end.",
            least=short_number(min(self._rates)),
            most=short_number(max(self._rates)),
            first=short_number(self._rates[0]),
            last=short_number(self._rates[-1]),
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the curve."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.paint_frame(painter)
        colors, area = theme().colors, self.area()
        level = area.bottom() - self.height_of(self._average)
        painter.setPen(QPen(colors.muted, 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(area.left(), level), QPointF(area.right(), level))
        across = area.width() / max(1, len(self._rates) - 1)
        points = [
            QPointF(area.left() + index * across, area.bottom() - self.height_of(rate))
            for index, rate in enumerate(self._rates)
        ]
        painter.setPen(QPen(colors.accent, 2))
        painter.drawPolyline(points)
        painter.setPen(colors.muted)
        below = self.below()
        text = token_words(self._tokens)
        free = below.width() - self.fontMetrics().horizontalAdvance(text)
        start = tr("Within the answer")
        if self.fontMetrics().horizontalAdvance(start) + 8 <= free:
            painter.drawText(below, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, start)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
