"""A progress bar that says what is going on, how far it is, how fast, and how much longer it will take."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from app.i18n import tr
from app.widgets.amounts import progress_details
from app.widgets.labels import TextLabel, hint
from app.widgets.rate import RateMeter
from engine.progress import Progress

STEPS = 1000  # resolution of the bar: byte counts do not fit Qt's 32 bits


class LabelledProgress(QWidget):
    """What is being done, a bar (moving to and fro while the total is unknown), and a line of figures.

    `even`: the steps take about the same time each, so that a time left can be told.
    """

    def __init__(
        self,
        parent: QWidget | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        even: bool = True,
    ) -> None:
        super().__init__(parent)
        self._clock = clock
        self._even = even
        self._meter = RateMeter()
        self._shown: Progress | None = None
        self.what = TextLabel(parent=self)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(tr("Progress"))
        self.details = hint(parent=self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.what)
        layout.addWidget(self.bar)
        layout.addWidget(self.details)

    def start(self, what: str) -> None:
        """Show that something begins whose progress is not known yet."""
        self._meter = RateMeter()
        self.show_progress(Progress(what))

    def show_progress(self, progress: Progress) -> None:
        """Show where the operation is."""
        if progress is self._shown:
            return
        self._shown = progress
        self._meter.add(progress, self._clock())
        self.what.setText(progress.what)
        if progress.total > 0:
            self.bar.setRange(0, STEPS)
            self.bar.setValue(round(STEPS * min(1.0, max(0.0, progress.done / progress.total))))
        else:
            self.bar.setRange(0, 0)
        left = self._meter.seconds_left if self._even else None
        details = progress_details(progress, self._meter.rate, left)
        self.details.setText(details)
        self.bar.setAccessibleDescription(f"{progress.what} {details}".strip())
