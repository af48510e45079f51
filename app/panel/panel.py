"""The live panel: speed, where experts ran, the map of experts, memory. Hidden, it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.bars import Ink, Part
from app.panel.expert_map import ExpertMap
from app.panel.figures import ExpertGrid, Share, forecast, shares, speed
from app.panel.legend import Entry, LegendBar
from app.panel.memory import GpuMemory, MemoryReading, read_ram
from app.panel.meter import Meter
from app.panel.time_section import TimeSection
from app.precision import precision_label
from app.theme import heading, mark
from app.widgets.frames import separator
from engine.accounting import TimeSplit
from engine.events import ExpertHits, GenerationStats
from engine.status import EngineStatus
from engine.units import format_bytes

MEMORY_MS = 1000
_INKS = {
    "gpu": Ink("gpu"),
    "streamed": Ink("streamed", Qt.BrushStyle.BDiagPattern),
    "split": Ink("split", Qt.BrushStyle.VerPattern),
    "cpu": Ink("cpu", Qt.BrushStyle.Dense4Pattern),
}


class LivePanel(QScrollArea):
    """Shows the latest figures of the engine; they arrive by `show_status` and `show_stats`."""

    def __init__(self, parent: QWidget | None = None, ram: Callable[[], MemoryReading] = read_ram) -> None:
        super().__init__(parent)
        self._read_ram, self._gpu = ram, GpuMemory()
        self._status: EngineStatus | None = None
        self._stats: GenerationStats | None = None
        self._stale = True  # something changed while the panel was hidden
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(tr("Live panel"))
        mark(self, surface=True)
        self.now = heading(QLabel(), 2.0)
        self.rows: dict[str, QLabel] = {}
        self.time = TimeSection()
        self.shares = LegendBar()
        self.forecast = _wrapped()
        self.map = ExpertMap()
        self.caption = _wrapped()  # about the map, or about the cell that the reader is on
        self.ram = Meter(tr("Main memory (RAM)"))
        self.vram = Meter(tr("Graphics memory (VRAM)"))
        self.context = Meter(tr("Context"))
        self.caption.setMinimumHeight(self.caption.fontMetrics().lineSpacing() * 4)
        self.caption.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.map.described.connect(self._show_caption)
        self._timer = QTimer(self)
        self._timer.setInterval(MEMORY_MS)
        self._timer.timeout.connect(self._show_memory)
        content = self._content = QWidget()
        mark(content, surface=True)
        content.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(content)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(10)
        self._add_speed(column)
        self._add_section(column, tr("Where the time goes"), [self.time])
        self._add_section(column, tr("Where experts ran"), [self.shares, self.forecast])
        self._add_section(column, tr("Memory"), [self.ram, self.vram, self.context])
        self._add_section(column, tr("Experts"), [self.map, self.caption])
        column.addStretch(1)
        self.setWidget(content)

    def show_status(self, status: EngineStatus | None) -> None:
        """A model was loaded, changed, or closed (None)."""
        if status is None or self._status is None or status.model_name != self._status.model_name:
            self._stats = None
        self._status = status
        self._refresh()
        if self.isVisible():
            self._show_memory()

    def show_stats(self, stats: GenerationStats | None) -> None:
        """New figures of an answer; None when there is none to show."""
        self._stats = stats
        self._refresh()

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the figures beside the scroll bar."""
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(self._content.minimumSizeHint().width() + bar, super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up, and read the memory every second from now on."""
        super().showEvent(event)
        self._timer.start()
        self._show_memory()
        if self._stale:
            self._refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop reading."""
        super().hideEvent(event)
        self._timer.stop()

    def _refresh(self) -> None:
        self._stale = not self.isVisible()
        if self._stale:
            return
        figures = speed(self._stats)
        self.now.setText(figures.now)
        for name in ("average", "first_token", "prompt", "answer"):
            self.rows[name].setText(getattr(figures, name))
        hits = self._stats.hits if self._stats else ExpertHits.zeros(0, 0)
        self.time.show_split(self._stats.time if self._stats else TimeSplit())
        self.shares.set_entries([_entry(share) for share in shares(hits)])
        foretold = forecast(self._stats)
        self.forecast.setText(foretold)
        self.forecast.setVisible(bool(foretold))
        self.map.setVisible(self._status is not None)
        self.map.set_grid(ExpertGrid.of(self._status, hits))
        self._show_context()

    def _show_memory(self) -> None:
        ram = self._read_ram()
        self.ram.show_amount(*_amount(ram))
        status = self._status
        if status is None or status.gpu_index is None:
            self.vram.show_amount(tr("No graphics card in use"), [])
            return
        vram = self._gpu.read(status.gpu_index, status.vram_used)
        if vram is None:
            self.vram.show_amount(tr("Not known"), [])
        else:
            self.vram.show_amount(*_amount(vram))

    def _show_context(self) -> None:
        stats, status = self._stats, self._status
        length = stats.context_length if stats else status.context_length if status else 0
        used = stats.context_used if stats else status.context_used if status else 0
        if not length:
            self.context.show_amount("–", [])
            return
        text = tr("{used} of {length} tokens", used=f"{used:,}", length=f"{length:,}")
        self.context.show_amount(text, [Part(min(1.0, used / length), Ink("accent"))])

    def _legend(self) -> str:
        status = self._status
        if status is None:
            return tr("Each cell will be an expert of the model, once one is loaded.")
        text = tr("One row per layer, one cell per expert. Stronger: used more in this answer.")
        if status.has_gpu:
            text += " " + tr("Outlined: in GPU memory.")
        return text + " " + tr("Precision: {precision}.", precision=precision_label(status.precision))

    def _show_caption(self, cell: str) -> None:
        self.caption.setText(cell or self._legend())

    def _add_speed(self, column: QVBoxLayout) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        unit = QLabel(tr("tokens per second now"))
        mark(unit, muted=True)
        column.addWidget(self.now)
        column.addWidget(unit)
        column.addSpacing(4)
        names = {
            "average": tr("Average"),
            "first_token": tr("First token"),
            "prompt": tr("Prompt"),
            "answer": tr("Answer"),
        }
        for row, (key, name) in enumerate(names.items()):
            label, value = QLabel(name), _wrapped(muted=False)
            mark(label, muted=True)
            value.setAccessibleName(name)
            self.rows[key] = value
            grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, row, 1)
        column.addLayout(grid)

    @staticmethod
    def _add_section(column: QVBoxLayout, title: str, widgets: Sequence[QWidget]) -> None:
        column.addSpacing(4)
        column.addWidget(separator())
        column.addSpacing(2)
        column.addWidget(heading(QLabel(title), 1.05))
        for widget in widgets:
            column.addWidget(widget)


def _wrapped(*, muted: bool = True) -> QLabel:
    label = QLabel()
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if muted:
        mark(label, muted=True)
    return label


def _entry(share: Share) -> Entry:
    figures = f"{share.percent}  ({share.count:,})"
    return Entry(share.label, share.fraction, share.percent, figures, _INKS[share.color])


def _amount(memory: MemoryReading) -> tuple[str, list[Part], str]:
    """Figures, bar and tool tip of a memory reading: this program's part, then everything else's."""
    total = max(1, memory.total)
    others = max(0, memory.used - memory.ours)
    text = tr("{used} of {total}", used=format_bytes(memory.used), total=format_bytes(memory.total))
    tip = tr(
        "This program: {ours}. Other programs: {others}.",
        ours=format_bytes(memory.ours),
        others=format_bytes(others),
    )
    return (
        text,
        [
            Part(memory.ours / total, Ink("accent")),
            Part(others / total, Ink("muted", Qt.BrushStyle.BDiagPattern)),
        ],
        tip,
    )
