"""The key to the expert map: a scale from never to often, and the mark of experts in the GPU's memory."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from app.i18n import tr
from app.panel.expert_map import heat_color, mark_resident
from app.theme import mark, theme

_STEPS = 4  # of the scale


class MapLegend(QWidget):
    """Two lines, each with painted cells and words; the second only where there is a graphics card."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        self._resident = (_Cells((0.0, 1.0), resident=True), _label(tr("Outlined: in GPU memory")))
        scale = _Cells(tuple(step / (_STEPS - 1) for step in range(_STEPS)))
        words = _label(tr("From never to most often chosen in its layer, in this chat"))
        for row, widgets in enumerate(((scale, words), self._resident)):
            for column, widget in enumerate(widgets):
                grid.addWidget(
                    widget, row, column, Qt.AlignmentFlag.AlignTop if column == 0 else Qt.AlignmentFlag(0)
                )

    def set_has_gpu(self, has_gpu: bool) -> None:
        """Whether experts can be in a GPU's memory."""
        for widget in self._resident:
            widget.setVisible(has_gpu)


class _Cells(QWidget):
    """Cells as the map paints them."""

    def __init__(self, heats: tuple[float, ...], *, resident: bool = False) -> None:
        super().__init__()
        self._heats, self._resident = heats, resident
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """As wide as the scale, whichever line it is in."""
        line = self.fontMetrics().height()
        return QSize(line * _STEPS, line)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the cells."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width = self.width() / len(self._heats)
        for index, heat in enumerate(self._heats):
            rect = QRectF(index * width + 1, 2, width - 2, self.height() - 4)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(heat_color(heat))
            painter.drawRect(rect)
            if self._resident:
                mark_resident(painter, [rect])


def _label(text: str) -> QLabel:
    label = QLabel(text)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    mark(label, muted=True)
    return label
