"""The map of all experts: a row per layer, a cell per expert, stronger where it is chosen more.

Experts in the GPU's memory have an outline and, where there is room, a dot. Nothing depends on hue. The arrow
keys, Home, End and the page keys reach every cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import tr
from app.panel.figures import ExpertGrid
from app.panel.ticks import ticks
from app.theme import theme
from app.widgets.roles import set_role

_GAP = 2.0
_MARGIN = 6  # between the layers' numbers and the cells
_ROW = 11  # pixels of a row that can be read
_CALM_HEIGHT, _MOST_HEIGHT = 200, 420
_SHADES = 32  # more than the eye tells apart
_FAR = 1 << 20  # further than any map
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_Home: (0, -_FAR),
    Qt.Key.Key_End: (0, _FAR),
    Qt.Key.Key_PageUp: (-_FAR, 0),
    Qt.Key.Key_PageDown: (_FAR, 0),
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
        set_role(self, QAccessible.Role.Chart)
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
        row = max(_ROW, min(2 * _ROW, _CALM_HEIGHT // rows))  # few layers have room for taller rows
        return QSize(220, round(self._cells().top()) + min(rows * row, _MOST_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """At least three pixels for each layer."""
        return QSize(120, round(self._cells().top()) + max(24, self._grid.layers * 4))

    def cell_at(self, place: QPointF) -> tuple[int, int] | None:
        """The (layer, expert) at a place of the widget."""
        grid, area = self._grid, self._cells()
        if not grid.layers or not area.contains(place):
            return None
        layer = min(int((place.y() - area.top()) / area.height() * grid.layers), grid.layers - 1)
        expert = min(int((place.x() - area.left()) / area.width() * grid.experts), grid.experts - 1)
        return layer, expert

    def cell_rect(self, layer: int, expert: int) -> QRectF:
        """Where a cell is painted."""
        return self._rect_in(self._cells(), layer, expert)

    def labels(self) -> list[tuple[str, QRectF]]:
        """The numbers of layers and experts that have room, and where they stand."""
        grid, area, metrics = self._grid, self._cells(), self.fontMetrics()
        if not grid.layers:
            return []
        line, digit = metrics.height(), self._digit()
        height, width = area.height() / grid.layers, area.width() / grid.experts
        found = []
        # Where cells are smaller than numbers, the last number moves in by as much as it would stand out.
        spare = max(0.0, (digit - height) / 2)
        for layer in ticks(grid.layers, height, line + spare):
            top = min(area.top() + (layer + 0.5) * height - digit / 2, self.height() - digit)
            found.append((str(layer + 1), QRectF(0, top, area.left() - _MARGIN, digit)))
        wide = metrics.horizontalAdvance(str(grid.experts)) + 2
        spare = max(0.0, (wide - width) / 2)
        for expert in ticks(grid.experts, width, wide + spare + 4):
            left = area.left() + (expert + 0.5) * width - wide / 2
            found.append((str(expert + 1), QRectF(min(left, self.width() - wide), 0, wide, digit)))
        return found

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint every cell, and the keyboard's cursor when the map has the focus."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        grid, colors = self._grid, theme().colors
        painter.setPen(colors.muted)
        for text, box in self.labels():
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip, text)
        if grid.layers:
            self._paint_cells(painter)
        if self.hasFocus() and grid.layers:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colors.link, 2))
            painter.drawRoundedRect(self.cell_rect(*self._cursor).adjusted(-1, -1, 1, 1), 3, 3)

    def _paint_cells(self, painter: QPainter) -> None:
        """Paint all cells, those of a shade together: a large map must not hold up the window."""
        grid, area = self._grid, self._cells()
        first, second = self._rect_in(area, 0, 0), self._rect_in(area, 1, 1)
        size, across, down = first.size(), second.left() - first.left(), second.top() - first.top()
        shades: list[list[QRectF]] = [[] for _ in range(_SHADES + 1)]
        levels = np.rint(grid.heat * _SHADES).astype(int).tolist()
        for layer, row in enumerate(levels):
            top = first.top() + layer * down
            for expert, level in enumerate(row):
                shades[level].append(QRectF(QPointF(first.left() + expert * across, top), size))
        for level, rects in enumerate(shades):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(heat_color(level / _SHADES))
            painter.drawRects(rects)
        resident = [self._rect_in(area, *cell) for cell in np.argwhere(grid.residency).tolist()]
        mark_resident(painter, resident)

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

    def _rect_in(self, area: QRectF, layer: int, expert: int) -> QRectF:
        width, height = area.width() / self._grid.experts, area.height() / self._grid.layers
        gap = min(_GAP, height / 4, width / 4)
        left, top = area.left() + expert * width, area.top() + layer * height
        return QRectF(left + gap / 2, top + gap / 2, width - gap, height - gap)

    def _cells(self) -> QRectF:
        """Where the cells are, right of the layers' numbers and below the experts'."""
        metrics = self.fontMetrics()
        left = metrics.horizontalAdvance(str(max(1, self._grid.layers))) + _MARGIN
        digit = self._digit()
        top = digit + max(_MARGIN, digit / 2)  # the first layer's number may reach up that far
        return QRectF(left, top, max(1, self.width() - left), max(1, self.height() - top))

    def _digit(self) -> int:
        """The height of a number: without the room that lines of text need."""
        return self.fontMetrics().capHeight() + 3


def heat_color(heat: float) -> QColor:
    """The colour of a cell, from 0 (never chosen) to 1 (the most in its layer): each lighter or darker."""
    return _blend(theme().colors.track, theme().colors.accent, heat)


def mark_resident(painter: QPainter, rects: Sequence[QRectF]) -> None:
    """Outline cells; a lighter line inside keeps the outline visible on a strong cell."""
    if not rects:
        return
    colors = theme().colors
    side = min(rects[0].width(), rects[0].height())
    painter.setBrush(Qt.BrushStyle.NoBrush)
    if side >= 8:
        painter.setPen(QPen(colors.surface, 1))
        painter.drawRects([rect.adjusted(2.1, 2.1, -2.1, -2.1) for rect in rects])
    width = 1.6 if side >= 5 else 1.0
    painter.setPen(QPen(colors.text, width))
    painter.drawRects([rect.adjusted(width / 2, width / 2, -width / 2, -width / 2) for rect in rects])
    if rects[0].height() >= 14:
        painter.setPen(QPen(colors.surface, 1))
        painter.setBrush(colors.text)
        for rect in rects:
            painter.drawEllipse(rect.center(), 2.4, 2.4)


def _blend(first: QColor, second: QColor, share: float) -> QColor:
    """`share` of the second colour in the first."""

    def mix(a: float, b: float) -> float:
        return a + (b - a) * share

    return QColor.fromRgbF(
        mix(first.redF(), second.redF()),
        mix(first.greenF(), second.greenF()),
        mix(first.blueF(), second.blueF()),
    )
