"""Bars painted in the theme's colours, each with its figures in words beside it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.panel.figures import Share
from app.theme import mark, theme

# The parts of a bar also differ in pattern, so that it can be read without colour.
_PATTERNS = {
    "gpu": Qt.BrushStyle.SolidPattern,
    "streamed": Qt.BrushStyle.BDiagPattern,
    "split": Qt.BrushStyle.VerPattern,
    "cpu": Qt.BrushStyle.Dense4Pattern,
}


class StackedBar(QWidget):
    """Parts of a whole beside one another."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._parts: list[tuple[float, str]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def set_parts(self, parts: Sequence[tuple[float, str]]) -> None:
        """Show parts: fractions of the whole (in sum at most 1) and colour roles."""
        if list(parts) != self._parts:
            self._parts = list(parts)
            self.update()

    def sizeHint(self) -> QSize:
        """Half a line high."""
        return QSize(120, max(8, self.fontMetrics().height() // 2 + 2))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the track and the parts on it."""
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        path = QPainterPath()
        path.addRoundedRect(area, area.height() / 2, area.height() / 2)
        painter.setClipPath(path)
        painter.fillRect(area, colors.track)
        left = 0.0
        for fraction, role in self._parts:
            part = QRectF(left, 0, fraction * area.width(), area.height())
            self._fill(painter, part, getattr(colors, role), role)
            left = part.right()

    @staticmethod
    def _fill(painter: QPainter, part: QRectF, color: QColor, role: str) -> None:
        pattern = _PATTERNS.get(role, Qt.BrushStyle.SolidPattern)
        if pattern is not Qt.BrushStyle.SolidPattern:
            ground = QColor(color)
            ground.setAlpha(140)
            painter.fillRect(part, ground)
        painter.fillRect(part, QBrush(color, pattern))


class Swatch(StackedBar):
    """A small square of a bar's colour and pattern, for its legend."""

    def __init__(self, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_parts([(1.0, role)])

    def sizeHint(self) -> QSize:
        """A square."""
        side = max(10, self.fontMetrics().height() * 2 // 3)
        return QSize(side, side)


class ShareBar(QWidget):
    """Where experts ran: a stacked bar and a legend with the figures."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bar = StackedBar()
        self._values: list[QLabel] = []
        self._legend = QGridLayout()
        self._legend.setHorizontalSpacing(8)
        self._legend.setVerticalSpacing(3)
        self._legend.setColumnStretch(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._bar)
        column.addLayout(self._legend)

    @property
    def texts(self) -> list[str]:
        """The figures of the legend."""
        return [label.text() for label in self._values]

    def set_shares(self, shares: Sequence[Share]) -> None:
        """Show the shares; the same number of them each time."""
        if not self._values:
            for row, share in enumerate(shares):
                value = QLabel()
                self._values.append(value)
                self._legend.addWidget(Swatch(share.color), row, 0, Qt.AlignmentFlag.AlignVCenter)
                self._legend.addWidget(QLabel(share.label), row, 1)
                self._legend.addWidget(value, row, 2, Qt.AlignmentFlag.AlignRight)
        self._bar.set_parts([(share.fraction, share.color) for share in shares])
        for label, share in zip(self._values, shares, strict=True):
            label.setText(f"{share.percent}  ({share.count:,})")
        words = [f"{share.label}: {share.percent}" for share in shares]
        self._bar.setAccessibleName(", ".join(words))


class Meter(QWidget):
    """An amount of a whole: name on the left, figures on the right, a bar below."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = QLabel(name)
        self._value = QLabel()
        mark(self._value, muted=True)
        self._bar = StackedBar()
        line = QHBoxLayout()
        line.addWidget(self._name)
        line.addStretch(1)
        line.addWidget(self._value)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(line)
        column.addWidget(self._bar)

    @property
    def text(self) -> str:
        """The figures in words."""
        return self._value.text()

    def show_amount(self, text: str, parts: Sequence[tuple[float, str]], tip: str = "") -> None:
        """Show figures and the bar's parts; without parts there is no bar."""
        self._value.setText(text)
        self._bar.setVisible(bool(parts))
        self._bar.set_parts(parts)
        self._bar.setAccessibleName(f"{self._name.text()}: {text}")
        self.setToolTip(tip)
