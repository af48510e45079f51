"""The expert map with its key, and a sentence about the cell that the reader is on."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.expert_map import ExpertMap
from app.panel.figures import ExpertGrid
from app.panel.map_legend import MapLegend
from app.precision import precision_label
from app.widgets.labels import hint
from engine.status import EngineStatus

_LINES = 4  # of the longest sentence about a cell: what is below must not move while the mouse does


class ExpertsSection(QWidget):
    """Hides the map while no model is loaded."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.map = ExpertMap()
        self.legend = MapLegend()
        self.caption = hint()
        self.caption.setMinimumHeight(self.caption.fontMetrics().lineSpacing() * _LINES)
        self.caption.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.map.described.connect(self._show_caption)
        self._status: EngineStatus | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for widget in (self.map, self.legend, self.caption):
            column.addWidget(widget)

    def show_experts(self, grid: ExpertGrid, status: EngineStatus | None) -> None:
        """Show where experts are and how often each was chosen."""
        self._status = status
        for widget in (self.map, self.legend):
            if widget.isHidden() is (status is not None):
                widget.setVisible(status is not None)
        self.legend.set_has_gpu(status is not None and status.has_gpu)
        self.map.set_grid(grid)

    def _show_caption(self, cell: str) -> None:
        self.caption.setText(cell or self._about())

    def _about(self) -> str:
        status = self._status
        if status is None:
            return tr("Each cell will be an expert of the model, once one is loaded.")
        text = tr(
            "One row per layer, one cell per expert. Point at a cell, or use the arrow keys, to read it."
        )
        return text + " " + tr("Precision: {precision}.", precision=precision_label(status.precision))
