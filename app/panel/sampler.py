"""Looks at the machine regularly, away from the GUI thread, while somebody watches."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from app.i18n import tr
from app.panel.machine import MachineReading
from app.widgets.background import Background
from engine.errors import EngineError

log = logging.getLogger(__name__)

INTERVAL_MS = 1000  # a load that changes faster cannot be read
PATIENCE = 3  # failures in a row until it gives up


class Sampler(QObject):
    """Between `start` and `stop`, `sampled` brings a `MachineReading` about once a second.

    `read` runs in another thread, once at a time: while a slow driver thinks, no further question is asked.
    """

    sampled = Signal(object)

    def __init__(self, read: Callable[[int | None], MachineReading], parent: QObject) -> None:
        super().__init__(parent)
        self._read = read
        self._background: Background[MachineReading] = Background(tr("Reading the machine's load"), self)
        self._timer = QTimer(self)
        self._timer.setInterval(INTERVAL_MS)
        self._timer.timeout.connect(self._sample)
        self._failures = 0  # in a row
        self.gpu_index: int | None = None  # NVML's number of the card to ask about

    @property
    def running(self) -> bool:
        """Whether it looks now and then."""
        return self._timer.isActive()

    def start(self) -> None:
        """Look now, and regularly from now on."""
        if not self.running and self._failures < PATIENCE:
            self._timer.start()
            self._sample()

    def stop(self) -> None:
        """Look no more; a reading under way is not delivered."""
        self._timer.stop()
        self._background.forget()

    def _sample(self) -> None:
        if self._background.busy:
            return
        index = self.gpu_index
        self._background.run(lambda: self._read(index), self._on_read, self._on_failed)

    def _on_read(self, reading: MachineReading) -> None:
        self._failures = 0
        self.sampled.emit(reading)

    def _on_failed(self, error: EngineError) -> None:
        """One look less: the next may succeed. A system that never answers is not asked for ever."""
        self._failures += 1
        if self._failures == PATIENCE:
            log.warning("the machine's load is not shown any more: %s", error)
            self._timer.stop()
