"""What the worker's jobs do with the engine, and the signals that tell the window of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.engine_factory import EngineFactory, LoadedEngine
from app.i18n import tr
from app.worker_jobs import Job, Outbox, answers, whole_text
from engine.errors import EngineError
from engine.options import LoadOptions
from engine.params import GenerationParams, Message

if TYPE_CHECKING:
    from engine.profile import Probe


class EngineSignals(QObject):
    """What a worker tells the window, in the window's thread."""

    progress = Signal(object)  # Progress of the operation that runs
    loaded = Signal(object, object)  # EngineStatus, the model's default GenerationParams
    closed = Signal()
    counter_changed = Signal(object)  # TokenCounter of the model that was loaded
    probe = Signal(object)  # one measurement of a calibration
    calibrated = Signal(object)  # Profile
    model_ready = Signal(object)  # Path, after prepare_starter and download
    aside_finished = Signal(int, str, object)  # request id, the whole text, FinishReason
    turns_dropped = Signal(int, int)  # request id, how many messages at the beginning are not read
    prompt_progress = Signal(int, object)  # request id, PromptProgress
    text = Signal(int, str)
    stats = Signal(int, object)  # request id, GenerationStats
    finished = Signal(int, object)  # request id, Finished
    status_changed = Signal(object)  # EngineStatus after a generation or a calibration
    failed = Signal(str, object)  # operation, EngineError
    cancelled = Signal(str)  # operation
    idle_changed = Signal(bool)  # True when no operation runs or waits


class EngineOperations:
    """Holds the engine. Every method runs in the worker's thread, one after the other.

    `say` calls something in the window's thread, in order, after all text and figures so far.
    """

    def __init__(
        self,
        factory: EngineFactory,
        outbox: Outbox,
        signals: EngineSignals,
        say: Callable[[Callable[[], None]], None],
    ) -> None:
        self._factory, self._outbox, self._signals, self._say = factory, outbox, signals, say
        self._engine: LoadedEngine | None = None

    def load(self, job: Job, path: Path, options: LoadOptions) -> None:
        """Load a model, in place of the one before."""
        self.close()
        engine = self._engine = self._factory.load(path, options, self._outbox.put_progress, job.token)
        self._say(partial(self._signals.counter_changed.emit, engine))
        self._say(partial(self._signals.loaded.emit, engine.status(), engine.default_params))

    def calibrate(self, job: Job) -> None:
        """Measure the machine with the loaded model."""
        engine = self._need()

        def on_probe(probe: Probe) -> None:
            self._say(lambda: self._signals.probe.emit(probe))

        profile = self._factory.calibrate(engine, self._outbox.put_progress, job.token, on_probe)
        self._say(lambda: self._signals.calibrated.emit(profile))
        self._say_status(engine)

    def generate(
        self, job: Job, ids: Sequence[int], messages: Sequence[Message], params: Sequence[GenerationParams]
    ) -> None:
        """Answer a conversation, once for each id."""
        engine = self._need()
        for request_id, end in answers(engine, self._outbox, ids, messages, params, job.token):
            self._say_status(engine)
            self._say(partial(self._signals.finished.emit, request_id, end))

    def aside(self, job: Job, request_id: int, messages: Sequence[Message], params: GenerationParams) -> None:
        """Write a text that nobody waits for."""
        text, end = whole_text(self._need().generate(messages, params, job.token))
        job.token.raise_if_cancelled()
        self._say(lambda: self._signals.aside_finished.emit(request_id, text, end.reason))

    def prepare_starter(self, job: Job, force: bool) -> None:
        """Fetch and convert the starter model."""
        folder = self._factory.prepare_starter(self._outbox.put_progress, job.token, force=force)
        self._say(lambda: self._signals.model_ready.emit(folder))

    def download(self, job: Job, repo_id: str, folder: Path, force: bool) -> None:
        """Download a model."""
        path = self._factory.download(repo_id, folder, self._outbox.put_progress, job.token, force=force)
        self._say(lambda: self._signals.model_ready.emit(path))

    def _need(self) -> LoadedEngine:
        if self._engine is None:
            raise EngineError(tr("No model is loaded."), action=tr("Choose a model first."))
        return self._engine

    def close(self) -> None:
        """Give back the model's memory."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
            self._say(self._signals.closed.emit)

    def _say_status(self, engine: LoadedEngine) -> None:
        status = engine.status()
        self._say(lambda: self._signals.status_changed.emit(status))
