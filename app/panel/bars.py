"""Bars painted in the theme's colours: parts differ in pattern too, and name their share where it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QHelpEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme import theme


@dataclass(frozen=True)
class Ink:
    """How a part is painted: a colour role of the theme, and a pattern that tells it apart without colour."""

    role: str
    pattern: Qt.BrushStyle = Qt.BrushStyle.SolidPattern


@dataclass(frozen=True)
class Part:
    """A part of a bar: its share of the whole (0 to 1), its looks, a label inside it, and a tool tip."""

    fraction: float
    ink: Ink
    label: str = ""
    tip: str = ""


class StackedBar(QWidget):
    """Parts of a whole beside one another. `tall` ones have room for the parts' labels."""

    def __init__(self, parent: QWidget | None = None, *, tall: bool = False) -> None:
        super().__init__(parent)
        self._parts: tuple[Part, ...] = ()
        self._tall = tall
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is shown."""
        return self._parts

    def set_parts(self, parts: Sequence[Part]) -> None:
        """Show other parts; their fractions are in sum at most 1."""
        if tuple(parts) != self._parts:
            self._parts = tuple(parts)
            self.update()

    def sizeHint(self) -> QSize:
        """Half a line high, or as high as a label needs."""
        line = self.fontMetrics().height()
        return QSize(120, line + 6 if self._tall else max(8, line // 2 + 2))

    def boxes(self) -> list[QRectF]:
        """Where the parts are painted."""
        left, found = 0.0, []
        for part in self._parts:
            found.append(QRectF(left, 0, part.fraction * self.width(), self.height()))
            left = found[-1].right()
        return found

    def labels(self) -> list[tuple[str, QRectF]]:
        """The labels that fit into their parts, and where they stand: they cannot overlap."""
        metrics = self.fontMetrics()
        placed = []
        for part, box in zip(self._parts, self.boxes(), strict=True):
            width = metrics.horizontalAdvance(part.label) + 8
            if part.label and width + 4 <= box.width() and self._tall:
                chip = QRectF(0, 0, width, metrics.height())
                chip.moveCenter(box.center())
                placed.append((part.label, chip))
        return placed

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the track, the parts on it, and their labels."""
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect())
        path = QPainterPath()
        radius = min(area.height() / 4, 6.0)
        path.addRoundedRect(area, radius, radius)
        painter.setClipPath(path)
        painter.fillRect(area, colors.track)
        boxes = self.boxes()
        for part, box in zip(self._parts, boxes, strict=True):
            fill(painter, box, part.ink)
        painter.setPen(colors.surface)
        for box in boxes[:-1]:  # a thin line between neighbours of similar lightness
            painter.drawLine(QPointF(box.right(), 0), QPointF(box.right(), area.height()))
        for text, chip in self.labels():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.surface)
            painter.drawRoundedRect(chip, 4, 4)
            painter.setPen(colors.text)
            painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, text)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(colors.edge)  # only high contrast has one
        painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)

    def event(self, event: QEvent) -> bool:
        """The tool tip of the part under the pointer."""
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            for part, box in zip(self._parts, self.boxes(), strict=True):
                if part.tip and box.contains(QPointF(event.pos())):
                    QToolTip.showText(event.globalPos(), part.tip, self)
                    return True
        return super().event(event)


class Swatch(StackedBar):
    """A small square of a part's colour and pattern, for its legend."""

    def __init__(self, ink: Ink, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_parts([Part(1.0, ink)])

    def sizeHint(self) -> QSize:
        """A square, large enough for its pattern."""
        side = max(12, self.fontMetrics().height() * 4 // 5)
        return QSize(side, side)


def fill(painter: QPainter, box: QRectF, ink: Ink) -> None:
    """Paint `box` in an ink: the pattern in full colour on a paler ground."""
    color: QColor = getattr(theme().colors, ink.role)
    if ink.pattern is not Qt.BrushStyle.SolidPattern:
        painter.fillRect(box, theme().colors.surface)  # the track would take contrast from it
        ground = QColor(color)
        ground.setAlpha(70)
        painter.fillRect(box, ground)
    painter.fillRect(box, QBrush(color, ink.pattern))
