"""The plan against reality: how long layers were foretold to take, and how long they took."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.bars import Ink, Part
from app.panel.figures import forecast
from app.panel.meter import Meter
from app.widgets.labels import hint
from engine.events import GenerationStats

_PLANNED = Ink("muted", Qt.BrushStyle.BDiagPattern)
_REAL = Ink("accent")


class ForecastSection(QWidget):
    """Two bars on one scale, and a sentence."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.planned = Meter(tr("Planned time"))
        self.real = Meter(tr("Real time"))
        self.sentence = hint()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for widget in (self.planned, self.real, self.sentence):
            column.addWidget(widget)

    def show_forecast(self, stats: GenerationStats | None) -> None:
        """Show how well an answer was foretold; where nothing is known, say so."""
        error = None if stats is None else stats.prediction_error
        known = error is not None
        for meter in (self.planned, self.real):
            if meter.isHidden() is known:
                meter.setVisible(known)
        if stats is None or error is None:
            self.sentence.setText(tr("Known once a calibrated model has answered."))
            return
        self.sentence.setText(forecast(stats))
        planned = max(0.0, 1 + error)
        whole = max(1.0, planned)
        self.planned.show_amount(tr("{n}%", n=round(100 * planned)), [Part(planned / whole, _PLANNED)])
        self.real.show_amount(tr("{n}%", n=100), [Part(1 / whole, _REAL)])
