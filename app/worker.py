"""The engine in a thread of its own: requests in, signals out, the window never waits.

Every method may be called from the GUI thread at any time; the work is queued, one job after the other.
Events reach the window at most thirty times a second, text joined, of figures only the latest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QThread, QTimer, Signal, Slot

from app.engine_factory import EngineFactory, LoadedEngine
from app.i18n import tr
from app.worker_jobs import Job, JobRunner, Outbox, answers, whole_text
from engine.errors import Cancelled, EngineError
from engine.options import LoadOptions
from engine.params import GenerationParams, Message
from engine.status import EngineStatus

if TYPE_CHECKING:
    from engine.profile import Probe

log = logging.getLogger(__name__)

FLUSH_INTERVAL_MS = 33  # thirty times a second: smooth to read, and cheap to lay out


class EngineWorker(QObject):
    """The window's handle on the engine. The object lives in the GUI thread, the engine in its QThread.

    The end of each operation is reported once: by its own signal (`loaded`, `calibrated`, `finished`,
    `model_ready`, `closed`), or by `failed`, or by `cancelled`; then `idle_changed` may follow. The names
    are "load", "calibrate", "generate", "prepare_starter", "download" and "close_model".
    """

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

    _requested = Signal(object)  # Job, to the thread
    _report = Signal(object)  # a callable that emits a public signal, to the GUI thread
    _woken = Signal()

    def __init__(self, factory: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._factory = factory
        self.load_options: LoadOptions | None = None  # of the latest load
        self._engine: LoadedEngine | None = None  # touched by the worker's thread alone
        self._closing = False
        self._jobs: list[Job] = []  # running or waiting; touched by the GUI thread alone
        self._asides: list[Job] = []  # the same, but nobody waits for them
        self._outbox = Outbox(self._woken.emit)
        self._since_flush = QElapsedTimer()
        self._flush_timer = QTimer(self)
        self._flush_timer.setSingleShot(True)
        self._flush_timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._flush_timer.timeout.connect(self.flush)
        self._thread = QThread()
        self._thread.setObjectName("engine")
        self._runner = JobRunner()
        self._runner.moveToThread(self._thread)
        queued = Qt.ConnectionType.QueuedConnection
        self._requested.connect(self._runner.run, queued)
        self._runner.ended.connect(self._on_ended, queued)
        self._report.connect(self._on_report, queued)
        self._woken.connect(self._on_woken, queued)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether no operation runs or waits."""
        return not self._jobs

    @property
    def operation(self) -> str:
        """The name of the operation that runs, "" when idle."""
        return self._jobs[0].operation if self._jobs else ""

    @Slot(object, object)
    def load(self, path: Path, options: LoadOptions) -> None:
        """Load a model; the one loaded before is closed first, because there is no room for two."""
        self.load_options = options
        self._submit("load", tr("Loading the model"), lambda job: self._run_load(job, path, options))

    @Slot()
    def calibrate(self) -> None:
        """Measure the machine with the loaded model."""
        self._submit("calibrate", tr("The calibration"), self._run_calibrate)

    @Slot(int, object, object)
    def generate(self, request_id: int, messages: Sequence[Message], params: GenerationParams) -> None:
        """Answer a conversation; `request_id` comes back with every signal about the answer."""
        self.generate_together([request_id], messages, [params])

    def generate_together(
        self, request_ids: Sequence[int], messages: Sequence[Message], params: Sequence[GenerationParams]
    ) -> None:
        """Answer a conversation several times at once; see `generate`. Each answer has its own end."""
        self._submit(
            "generate", tr("The answer"), lambda job: self._run_generate(job, request_ids, messages, params)
        )

    def generate_aside(self, request_id: int, messages: Sequence[Message], params: GenerationParams) -> None:
        """Have something written that nobody waits for: it gives way to whatever else is asked for.

        Only `aside_finished` tells of it, if it comes to an end; it leaves the worker as idle as it was.
        """
        if self._closing:
            return
        title = tr("A text in the background")
        job = Job("aside", title, lambda: self._run_aside(job, request_id, messages, params))
        self._asides.append(job)
        self._requested.emit(job)

    @Slot()
    def cancel_asides(self) -> None:
        """Stop what nobody waits for."""
        for job in self._asides:
            job.token.cancel()

    @Slot()
    def prepare_starter(self, force: bool = False) -> None:
        """Make the starter model, with `force` on a full disk too; `model_ready` brings its folder."""
        self._submit(
            "prepare_starter",
            tr("Preparing the starter model"),
            lambda job: self._run_prepare_starter(job, force),
        )

    @Slot(str, object)
    def download(self, repo_id: str, folder: Path, force: bool = False) -> None:
        """Download a model, with `force` on a full disk too; `model_ready` brings its folder."""
        self._submit(
            "download", tr("The download"), lambda job: self._run_download(job, repo_id, folder, force)
        )

    @Slot()
    def close_model(self) -> None:
        """Give back the model's memory."""
        self._submit("close_model", tr("Closing the model"), lambda _: self._close_engine())

    @Slot()
    def cancel(self) -> None:
        """Stop what runs and drop what waits: `cancelled` reports each, or `finished` a begun answer."""
        self.cancel_asides()
        for job in list(self._jobs):
            job.token.cancel()

    @Slot()
    def flush(self) -> None:
        """Deliver now what the engine has said and the window has not heard yet."""
        self._flush_timer.stop()
        self._since_flush.restart()
        for content in self._outbox.take():
            if content.progress is not None:
                self.progress.emit(content.progress)
            if content.request_id is None:
                continue
            if content.dropped is not None:
                self.turns_dropped.emit(content.request_id, content.dropped.messages)
            if content.prompt is not None:
                self.prompt_progress.emit(content.request_id, content.prompt)
            if content.text:
                self.text.emit(content.request_id, "".join(content.text))
            if content.stats is not None:
                self.stats.emit(content.request_id, content.stats)

    def shutdown(self, timeout_ms: int = 1000) -> bool:
        """Stop everything and end the thread; False if an operation did not give way within the time.

        The thread is then left alone: the caller ends the process without waiting for it. A second call only
        waits again.
        """
        if self._closing:
            return self._thread.wait(timeout_ms)
        self._closing = True
        self.cancel()
        self._submit("close_model", tr("Closing the model"), lambda _: self._close_engine())
        self._flush_timer.stop()
        self._runner.ended.disconnect(self._on_ended)
        self._requested.emit(None)
        ended = self._thread.wait(timeout_ms)
        if not ended:
            log.warning("the engine's thread did not end within %d ms", timeout_ms)
            _ABANDONED.append(self._thread)  # destroying a running QThread would abort the process
        return ended

    def _submit(self, operation: str, title: str, run: Callable[[Job], None]) -> None:
        self.cancel_asides()
        job = Job(operation, title, lambda: run(job))
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self.idle_changed.emit(False)
        self._requested.emit(job)

    # The following run in the worker's thread.

    def _run_load(self, job: Job, path: Path, options: LoadOptions) -> None:
        self._close_engine()
        engine = self._engine = self._factory.load(path, options, self._outbox.put_progress, job.token)
        self._say(partial(self.counter_changed.emit, engine))
        self._say(partial(self.loaded.emit, engine.status(), engine.default_params))

    def _run_calibrate(self, job: Job) -> None:
        engine = self._need_engine()

        def on_probe(probe: Probe) -> None:
            self._say(lambda: self.probe.emit(probe))

        profile = self._factory.calibrate(engine, self._outbox.put_progress, job.token, on_probe)
        self._say(lambda: self.calibrated.emit(profile))
        self._say_status(engine.status())

    def _run_generate(
        self, job: Job, ids: Sequence[int], messages: Sequence[Message], params: Sequence[GenerationParams]
    ) -> None:
        engine = self._need_engine()
        for request_id, end in answers(engine, self._outbox, ids, messages, params, job.token):
            self._say_status(engine.status())
            self._say(partial(self.finished.emit, request_id, end))

    def _run_aside(
        self, job: Job, request_id: int, messages: Sequence[Message], params: GenerationParams
    ) -> None:
        text, end = whole_text(self._need_engine().generate(messages, params, job.token))
        job.token.raise_if_cancelled()
        self._say(lambda: self.aside_finished.emit(request_id, text, end.reason))

    def _run_prepare_starter(self, job: Job, force: bool) -> None:
        folder = self._factory.prepare_starter(self._outbox.put_progress, job.token, force=force)
        self._say(lambda: self.model_ready.emit(folder))

    def _run_download(self, job: Job, repo_id: str, folder: Path, force: bool) -> None:
        path = self._factory.download(repo_id, folder, self._outbox.put_progress, job.token, force=force)
        self._say(lambda: self.model_ready.emit(path))

    def _need_engine(self) -> LoadedEngine:
        if self._engine is None:
            raise EngineError(tr("No model is loaded."), action=tr("Choose a model first."))
        return self._engine

    def _close_engine(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
            self._say(self.closed.emit)

    def _say(self, emit: Callable[[], None]) -> None:
        self._report.emit(emit)

    def _say_status(self, status: EngineStatus) -> None:
        self._say(lambda: self.status_changed.emit(status))

    # And these in the GUI thread.

    @Slot(object)
    def _on_report(self, emit: Callable[[], None]) -> None:
        self.flush()  # an operation's result never overtakes its text and figures
        emit()

    @Slot(object, object)
    def _on_ended(self, job: Job, error: EngineError | None) -> None:
        self.flush()
        if job in self._asides:
            self._asides.remove(job)  # `JobRunner` has logged an error of it
            return
        self._jobs.remove(job)
        if isinstance(error, Cancelled):
            self.cancelled.emit(job.operation)
        elif error is not None:
            self.failed.emit(job.operation, error)
        if not self._jobs:
            self.idle_changed.emit(True)

    @Slot()
    def _on_woken(self) -> None:
        since = self._since_flush.elapsed() if self._since_flush.isValid() else FLUSH_INTERVAL_MS
        self._flush_timer.start(max(0, FLUSH_INTERVAL_MS - since))


_ABANDONED: list[QThread] = []
