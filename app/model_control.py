"""Loads the model that the settings name, and tells the window how that goes."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.model_strip import ModelStrip
from app.i18n import tr, tr_count
from app.precision import precision_label
from app.settings import SettingsStore, load_options, registry
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.isa_words import isa_words
from engine.params import GenerationParams
from engine.progress import Progress
from engine.status import EngineStatus

_LOAD = "load"


class ModelControl(QObject):
    """Between the settings, the worker and the strip above the composer."""

    status_changed = Signal(object)  # EngineStatus, or None while no model is loaded
    choose_requested = Signal()

    def __init__(
        self, worker: EngineWorker, settings: SettingsStore, strip: ModelStrip, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._worker, self._settings, self._strip = worker, settings, strip
        self.status: EngineStatus | None = None
        self.defaults: GenerationParams | None = None  # what the loaded model recommends
        strip.choose_requested.connect(self.choose_requested)
        strip.cancel_requested.connect(self._cancel)
        strip.retry_requested.connect(self.load_saved)
        strip.anyway_requested.connect(lambda: self.load_saved(force=True))
        worker.idle_changed.connect(self._on_idle_changed)
        worker.progress.connect(self._on_progress)
        worker.loaded.connect(self._on_loaded)
        worker.closed.connect(self._on_closed)
        worker.status_changed.connect(self._on_status)
        worker.failed.connect(self._on_failed)
        worker.cancelled.connect(self._on_cancelled)

    @property
    def saved_model(self) -> Path | None:
        """The folder of the model that was used last."""
        path = self._settings.get(registry.MODEL_PATH)
        return Path(path) if path else None

    @Slot()
    def load_saved(self, *, force: bool = False) -> None:
        """Load the model of the settings; `force` although memory looks short."""
        path = self.saved_model
        if path is None:
            self.choose_requested.emit()
            return
        self._strip.show_loading(tr("Loading the model…"))
        self._worker.load(path, load_options(self._settings, force=force))

    def _cancel(self) -> None:
        self._strip.show_cancelling()
        self._worker.cancel()

    @Slot(bool)
    def _on_idle_changed(self, idle: bool) -> None:
        if not idle and self._worker.operation == _LOAD and self._strip.isHidden():
            self._strip.show_loading(tr("Loading the model…"))

    @Slot(object)
    def _on_progress(self, progress: Progress) -> None:
        if self._worker.operation == _LOAD:
            self._strip.show_progress(progress)

    @Slot(object, object)
    def _on_loaded(self, status: EngineStatus, defaults: GenerationParams) -> None:
        self.defaults = defaults
        self._strip.show_ready()
        self._on_status(status)

    @Slot(object)
    def _on_status(self, status: EngineStatus | None) -> None:
        self.status = status
        if status is None:
            self.defaults = None
        self.status_changed.emit(status)

    @Slot()
    def _on_closed(self) -> None:
        self._on_status(None)
        if self._worker.operation != _LOAD:  # otherwise the next model is on its way
            self._strip.show_none()

    @Slot(str, object)
    def _on_failed(self, operation: str, error: EngineError) -> None:
        if operation == _LOAD and not self._loads_another():
            self._strip.show_error(error)

    @Slot(str)
    def _on_cancelled(self, operation: str) -> None:
        if operation != _LOAD or self._loads_another():
            return
        if self.status is None:
            self._strip.show_none()
        else:
            self._strip.show_ready()  # it was called off before the model that is there had to go

    def _loads_another(self) -> bool:
        """Whether the next model is on its way; then the strip says so."""
        if self._worker.operation != _LOAD:
            return False
        self._strip.show_loading(tr("Loading the model…"))
        return True


def where_it_runs(status: EngineStatus) -> str:
    """A model's name and place of work for the status line, and the precision if it is not the files'."""
    place = _place(status)
    if status.precision == "bf16":
        return place
    return tr("{place} · experts in {precision}", place=place, precision=precision_label(status.precision))


def _place(status: EngineStatus) -> str:
    if not status.has_gpu:
        threads = tr_count("{count} thread", "{count} threads", status.threads)
        return tr(
            "{model} · on the CPU ({threads}, {isa})",
            model=status.model_name,
            threads=threads,
            isa=isa_words(status.isa),
        )
    return tr(
        "{model} · on {device}, {resident} of {all} experts in its memory",
        model=status.model_name,
        device=status.device,
        resident=status.resident_experts,
        all=status.layers * status.experts,
    )
