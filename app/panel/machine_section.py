"""The machine in the panel: memory and load, each with this program's part and everything else's."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.answers import percent_words
from app.i18n import tr
from app.panel.bars import Ink, Part
from app.panel.machine import MachineReading, Use
from app.panel.meter import Meter
from app.theme import mark
from engine.status import EngineStatus
from engine.units import format_bytes

_OURS = Ink("accent")
_OTHERS = Ink("muted", Qt.BrushStyle.BDiagPattern)
_WHOSE = Ink("accent", Qt.BrushStyle.Dense4Pattern)  # nobody says which program's


class MachineSection(QWidget):
    """Four meters. Those of the graphics card hide where none is in use, and one line says so."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.ram = Meter(tr("Main memory (RAM)"))
        self.cpu = Meter(tr("Processor load"))
        self.vram = Meter(tr("Graphics memory (VRAM)"))
        self.gpu = Meter(tr("Graphics card load"))
        self.note = QLabel()
        self.note.setWordWrap(True)
        self.note.setTextFormat(Qt.TextFormat.PlainText)
        mark(self.note, muted=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        for widget in (self.ram, self.cpu, self.vram, self.gpu, self.note):
            column.addWidget(widget)
        self._reading: MachineReading | None = None
        self._status: EngineStatus | None = None
        self._show()

    def show_reading(self, reading: MachineReading) -> None:
        """The machine was looked at."""
        self._reading = reading
        self._show()

    def show_status(self, status: EngineStatus | None) -> None:
        """Another model, or other amounts of the same."""
        self._status = status
        self._show()

    def _show(self) -> None:
        reading, status = self._reading, self._status
        uses_gpu = status is not None and status.gpu_index is not None
        for meter in (self.vram, self.gpu):
            meter.setVisible(uses_gpu)
        note = tr("Solid: this program. Striped: other programs.")
        if status is not None and not uses_gpu:
            note += " " + tr("No graphics card is in use.")
        self.note.setText(note)
        if reading is None:
            for meter in (self.ram, self.cpu, self.vram, self.gpu):
                meter.show_amount(tr("…"), [])
            return
        _show_use(self.ram, reading.ram)
        _show_load(self.cpu, reading.cpu_load, reading.our_load)
        if status is None or not uses_gpu:
            return
        gpu = reading.gpu
        if gpu is None or gpu.memory is None:
            self.vram.show_amount(tr("Not known"), [])
        else:
            memory = gpu.memory
            _show_use(self.vram, Use(memory.total, memory.used, min(memory.used, status.vram_used)))
        heat = None if gpu is None else gpu.temperature
        _show_load(self.gpu, None if gpu is None else gpu.load, heat=heat)


def _show_use(meter: Meter, use: Use) -> None:
    total, ours = max(1, use.total), use.ours or 0
    others = max(0, use.used - ours)
    tip = tr(
        "This program: {ours}. Other programs: {others}.",
        ours=format_bytes(ours),
        others=format_bytes(others),
    )
    text = tr("{used} of {total}", used=format_bytes(use.used), total=format_bytes(use.total))
    meter.show_amount(text, [Part(ours / total, _OURS, tip=tip), Part(others / total, _OTHERS, tip=tip)], tip)


def _show_load(meter: Meter, load: float | None, ours: float | None = None, heat: int | None = None) -> None:
    """A load; without `ours` all of it is told as one part."""
    words = [] if load is None else [percent_words(load)]
    if heat is not None:
        words.append(tr("{degrees} °C", degrees=heat))
    if load is None:
        meter.show_amount(" · ".join([tr("Not known"), *words]), [])
        return
    parts, tip = [Part(load, _WHOSE)], tr("All programs together.")
    if ours is not None:
        parts = [Part(ours, _OURS), Part(load - ours, _OTHERS)]
        tip = tr(
            "This program: {ours}. Other programs: {others}.",
            ours=percent_words(ours),
            others=percent_words(load - ours),
        )
    meter.show_amount(" · ".join(words), parts, tip)
