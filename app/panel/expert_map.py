"""The map of all experts: a row per layer, a cell per expert, darker where it is used more.

Experts in the GPU's memory have an outline and, where there is room, a dot. Nothing depends on hue.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import tr
from app.panel.figures import ExpertGrid
from app.theme import theme

_GAP = 2.0
_ROW_HEIGHT = 9
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class ExpertMap(QWidget):
    """Paints an `ExpertGrid`. The arrow keys walk over the cells; `described` tells about the one reached."""

    described = Signal(str)  # the cell under the keyboard's cursor or the mouse; "" for none

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = ExpertGrid.of(None, None)
        self._cursor = (0, 0)
        self._hovered: tuple[int, int] | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.setAccessibleName(tr("Map of experts"))
        theme().changed.connect(self.update)

    @property
    def grid(self) -> ExpertGrid:
        """What is shown."""
        return self._grid

    def set_grid(self, grid: ExpertGrid) -> None:
        """Show another state of the map."""
        if (grid.layers, grid.experts) != (self._grid.layers, self._grid.experts):
            self._cursor, self._hovered = (0, 0), None
            self.updateGeometry()
        self._grid = grid
        self._describe()
        self.update()

    def sizeHint(self) -> QSize:
        """Rows that can be told apart."""
        rows = max(1, self._grid.layers)
        return QSize(220, min(rows * (_ROW_HEIGHT + 2), 420))

    def minimumSizeHint(self) -> QSize:
        """At least three pixels for each layer."""
        return QSize(120, max(24, self._grid.layers * 4))

    def cell_at(self, place: QPointF) -> tuple[int, int] | None:
        """The (layer, expert) at a place of the widget."""
        grid = self._grid
        if not grid.layers or not self.rect().contains(place.toPoint()):
            return None
        layer = min(int(place.y() / self.height() * grid.layers), grid.layers - 1)
        expert = min(int(place.x() / self.width() * grid.experts), grid.experts - 1)
        return layer, expert

    def cell_rect(self, layer: int, expert: int) -> QRectF:
        """Where a cell is painted."""
        width, height = self.width() / self._grid.experts, self.height() / self._grid.layers
        gap = min(_GAP, height / 4)
        return QRectF(expert * width + gap / 2, layer * height + gap / 2, width - gap, height - gap)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint every cell, and the keyboard's cursor when the map has the focus."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        grid, colors = self._grid, theme().colors
        heat = grid.heat
        for layer, expert in np.ndindex(grid.layers, grid.experts):
            rect = self.cell_rect(layer, expert)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(_blend(colors.track, colors.accent, float(heat[layer, expert])))
            painter.drawRoundedRect(rect, 2, 2)
            if grid.residency[layer, expert]:
                self._mark_resident(painter, rect)
        if self.hasFocus() and grid.layers:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colors.link, 2))
            painter.drawRoundedRect(self.cell_rect(*self._cursor).adjusted(-1, -1, 1, 1), 3, 3)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk over the cells."""
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or not self._grid.layers:
            super().keyPressEvent(event)
            return
        layer, expert = self._cursor[0] + step[0], self._cursor[1] + step[1]
        self._cursor = (
            max(0, min(layer, self._grid.layers - 1)),
            max(0, min(expert, self._grid.experts - 1)),
        )
        self._hovered = None
        self._describe()
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Show the cursor."""
        super().focusInEvent(event)
        self._describe()
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Hide the cursor."""
        super().focusOutEvent(event)
        self._describe()
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell about the cell under the mouse."""
        self._hovered = self.cell_at(event.position())
        self._describe()

    def leaveEvent(self, event: QEvent) -> None:
        """The mouse has gone."""
        self._hovered = None
        self._describe()

    def event(self, event: QEvent) -> bool:
        """Show the cell's sentence as its tool tip."""
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            cell = self.cell_at(QPointF(event.pos()))
            if cell is not None:
                QToolTip.showText(event.globalPos(), self._grid.describe_cell(*cell), self)
            return True
        return super().event(event)

    def _describe(self) -> None:
        cell = self._hovered or (self._cursor if self.hasFocus() and self._grid.layers else None)
        text = self._grid.describe_cell(*cell) if cell else ""
        self.setAccessibleDescription(text or self._grid.describe())
        self.described.emit(text)

    @staticmethod
    def _mark_resident(painter: QPainter, rect: QRectF) -> None:
        colors = theme().colors
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(colors.text, 1.6))
        painter.drawRoundedRect(rect.adjusted(0.8, 0.8, -0.8, -0.8), 2, 2)
        if rect.height() >= 8:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.text)
            painter.drawEllipse(rect.center(), 1.8, 1.8)


def _blend(first: QColor, second: QColor, share: float) -> QColor:
    """`share` of the second colour in the first."""

    def mix(a: float, b: float) -> float:
        return a + (b - a) * share

    return QColor.fromRgbF(
        mix(first.redF(), second.redF()),
        mix(first.greenF(), second.greenF()),
        mix(first.blueF(), second.blueF()),
    )
