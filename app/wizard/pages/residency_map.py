"""The layers × experts map of a loaded model: which experts are in the graphics card's memory.

As in the live panel, these are marked by an outline and a dot: nothing depends on colours.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt
from PySide6.QtGui import QAccessible, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.i18n import tr
from app.panel.expert_map import mark_resident
from app.theme import theme
from app.widgets.roles import set_role

_GAP = 0.18  # of a cell


class ResidencyMap(QWidget):
    """One cell per expert, layers from left to right, experts from top to bottom, with a legend below."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._resident: npt.NDArray[np.bool_] = np.zeros((1, 1), dtype=np.bool_)
        self._layers, self._experts = 1, 1
        self._has_gpu = False
        set_role(self, QAccessible.Role.Chart)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def set_residency(self, resident: npt.NDArray[np.bool_] | None, layers: int, experts: int) -> None:
        """Show `resident`, bool [layers, experts]; None on a computer without a usable GPU."""
        self._has_gpu = resident is not None
        self._layers, self._experts = layers, experts
        self._resident = np.zeros((layers, experts), dtype=np.bool_) if resident is None else resident
        count = int(self._resident.sum())
        text = tr("{layers} layers with {experts} experts each", layers=layers, experts=experts)
        if self._has_gpu:
            where = tr("{count} of {total} on the graphics card", count=count, total=layers * experts)
        else:
            where = tr("all on the CPU")
        self.setAccessibleName(tr("Expert map: {text}, {where}", text=text, where=where))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Cells of a line's height, the axis' names, and the legend."""
        cell = self._largest_cell()
        return QSize(round(cell * self._layers), round(cell * self._experts + self._line() * 2.6))

    def minimumSizeHint(self) -> QSize:
        """Four pixels a layer."""
        return QSize(4 * self._layers, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the cells in the colours of their places."""
        colors = theme().colors
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        cell, gap = self._cell(self.width()), self._cell(self.width()) * _GAP
        layers, experts = self._layers, self._experts
        for layer in range(layers):
            for expert in range(experts):
                box = self._box(layer, expert)
                color = colors.gpu if self._resident[layer, expert] else colors.cpu
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(color)
                painter.drawRoundedRect(box, cell * 0.15, cell * 0.15)
        mark_resident(painter, self.marked_cells())
        line, bottom = self._line(), cell * experts
        painter.setPen(colors.muted)
        axis = QRectF(0, bottom, cell * layers - gap, line)
        first, last = self.axis_texts(axis.width())
        painter.drawText(axis, Qt.AlignmentFlag.AlignLeft, first)
        painter.drawText(axis, Qt.AlignmentFlag.AlignRight, last)
        places = [(colors.cpu, tr("CPU"))]
        if self._has_gpu:
            places.insert(0, (colors.gpu, tr("graphics card")))
        left = 0.0
        for color, name in places:
            size = line * 0.7
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(color)
            top = bottom + line * 1.4
            box = QRectF(left, top + (line - size) / 2, size, size)
            painter.drawRoundedRect(box, 2, 2)
            if color is colors.gpu:
                mark_resident(painter, [box])
            painter.setPen(colors.text)
            width = self.fontMetrics().horizontalAdvance(name)
            painter.drawText(QRectF(left + line, top, width + 4, line), Qt.AlignmentFlag.AlignVCenter, name)
            left += line * 2 + width

    def marked_cells(self) -> list[QRectF]:
        """Where the cells of the experts on the graphics card are."""
        return [self._box(layer, expert) for layer, expert in np.argwhere(self._resident).tolist()]

    def _box(self, layer: int, expert: int) -> QRectF:
        cell = self._cell(self.width())
        side = cell - cell * _GAP
        return QRectF(layer * cell, expert * cell, side, side)

    def axis_texts(self, width: float) -> tuple[str, str]:
        """What stands below the first and the last layer: words, or numbers where these would overlap."""
        first, last = tr("layer 1"), tr("layer {number}", number=self._layers)
        if self.fontMetrics().horizontalAdvance(f"{first}  {last}") > width:
            first, last = "1", str(self._layers)
        return first, last if self._layers > 1 else ""

    def event(self, event: QEvent) -> bool:
        """A tool tip for the cell under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self._cell_text(event.pos()), self)
            return True
        return super().event(event)

    def _cell_text(self, position: QPoint) -> str:
        cell = self._cell(self.width())
        layer, expert = int(position.x() / cell), int(position.y() / cell)
        if layer >= self._layers or expert >= self._experts:
            return ""
        place = tr("on the graphics card") if self._resident[layer, expert] else tr("on the CPU")
        return tr("Layer {layer}, expert {expert}: {place}", layer=layer + 1, expert=expert + 1, place=place)

    def _cell(self, width: int) -> float:
        """The side of a cell with its gap, in pixels, where the map is `width` wide."""
        return min(width / self._layers, self._largest_cell())

    def _largest_cell(self) -> float:
        return self._line() * 0.95

    def _line(self) -> int:
        return self.fontMetrics().height()
