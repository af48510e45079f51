"""The live panel: speed, where experts ran, the map of experts, memory. Hidden, it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from app.i18n import tr
from app.panel.bars import Ink, Part
from app.panel.expert_map import ExpertMap
from app.panel.figures import ExpertGrid, Share, forecast, shares, speed
from app.panel.legend import Entry, LegendBar
from app.panel.machine import MachineReader, MachineReading
from app.panel.machine_section import MachineSection
from app.panel.meter import Meter
from app.panel.sampler import Sampler
from app.panel.time_section import TimeSection
from app.precision import precision_label
from app.theme import heading, mark
from app.widgets.frames import separator
from engine.accounting import TimeSplit
from engine.events import ExpertHits, GenerationStats
from engine.status import EngineStatus

_INKS = {
    "gpu": Ink("gpu"),
    "streamed": Ink("streamed", Qt.BrushStyle.BDiagPattern),
    "split": Ink("split", Qt.BrushStyle.VerPattern),
    "cpu": Ink("cpu", Qt.BrushStyle.Dense4Pattern),
}


class LivePanel(QScrollArea):
    """Shows the latest figures of the engine; they arrive by `show_status` and `show_stats`."""

    def __init__(
        self, parent: QWidget | None = None, read: Callable[[int | None], MachineReading] | None = None
    ) -> None:
        super().__init__(parent)
        self._sampler = Sampler(read or MachineReader(), self)
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
        self.machine = MachineSection()
        self.context = Meter(tr("Context"))
        self.caption.setMinimumHeight(self.caption.fontMetrics().lineSpacing() * 4)
        self.caption.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.map.described.connect(self._show_caption)
        self._sampler.sampled.connect(self.machine.show_reading)
        content = self._content = QWidget()
        mark(content, surface=True)
        content.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(content)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(10)
        self._add_speed(column)
        column.addWidget(self.context)
        self._add_section(column, tr("Where the time goes"), [self.time])
        self._add_section(column, tr("Where experts ran"), [self.shares, self.forecast])
        self._add_section(column, tr("Experts"), [self.map, self.caption])
        self._add_section(column, tr("This computer"), [self.machine])
        column.addStretch(1)
        self.setWidget(content)

    def show_status(self, status: EngineStatus | None) -> None:
        """A model was loaded, changed, or closed (None)."""
        if status is None or self._status is None or status.model_name != self._status.model_name:
            self._stats = None
        self._status = status
        self._sampler.gpu_index = None if status is None else status.gpu_index
        self._refresh()

    def show_stats(self, stats: GenerationStats | None) -> None:
        """New figures of an answer; None when there is none to show."""
        self._stats = stats
        self._refresh()

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the figures beside the scroll bar."""
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(self._content.minimumSizeHint().width() + bar, super().minimumSizeHint().height())

    def showEvent(self, event: QShowEvent) -> None:
        """Catch up, and look at the machine every second from now on."""
        super().showEvent(event)
        self._sampler.start()
        if self._stale:
            self._refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop looking."""
        super().hideEvent(event)
        self._sampler.stop()

    def _refresh(self) -> None:
        self._stale = not self.isVisible()
        if self._stale:
            return
        self.machine.show_status(self._status)
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
