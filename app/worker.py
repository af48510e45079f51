"""The engine in a thread of its own: requests in, signals out, the window never waits.

Every method may be called from the GUI thread at any time; the work is queued, one job after the other.
Events reach the window at most thirty times a second, text joined, of figures only the latest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QThread, QTimer, Signal, Slot

from app.engine_factory import EngineFactory
from app.i18n import tr
from app.worker_jobs import Job, JobRunner, Outbox
from app.worker_operations import EngineOperations, EngineSignals
from engine.errors import Cancelled, EngineError
from engine.options import LoadOptions
from engine.params import GenerationParams, Message

log = logging.getLogger(__name__)

FLUSH_INTERVAL_MS = 33  # thirty times a second: smooth to read, and cheap to lay out


class EngineWorker(EngineSignals):
    """The window's handle on the engine. The object lives in the GUI thread, the engine in its QThread.

    The end of each operation is reported once: by its own signal (`loaded`, `calibrated`, `finished`,
    `model_ready`, `closed`), or by `failed`, or by `cancelled`; then `idle_changed` may follow. The names
    are "load", "calibrate", "generate", "prepare_starter", "download" and "close_model".
    """

    _requested = Signal(object)  # Job, to the thread
    _report = Signal(object)  # a callable that emits a public signal, to the GUI thread
    _woken = Signal()

    def __init__(self, factory: EngineFactory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.load_options: LoadOptions | None = None  # of the latest load
        self._closing = False
        self._jobs: list[Job] = []  # running or waiting; touched by the GUI thread alone
        self._asides: list[Job] = []  # the same, but nobody waits for them
        self._outbox = Outbox(self._woken.emit)
        self._operations = EngineOperations(factory, self._outbox, self, self._report.emit)
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
        self._submit("load", tr("Loading the model"), lambda job: self._operations.load(job, path, options))

    @Slot()
    def calibrate(self) -> None:
        """Measure the machine with the loaded model."""
        self._submit("calibrate", tr("The calibration"), self._operations.calibrate)

    @Slot(int, object, object)
    def generate(self, request_id: int, messages: Sequence[Message], params: GenerationParams) -> None:
        """Answer a conversation; `request_id` comes back with every signal about the answer."""
        self.generate_together([request_id], messages, [params])

    def generate_together(
        self, request_ids: Sequence[int], messages: Sequence[Message], params: Sequence[GenerationParams]
    ) -> None:
        """Answer a conversation several times at once; see `generate`. Each answer has its own end."""
        self._submit(
            "generate",
            tr("The answer"),
            lambda job: self._operations.generate(job, request_ids, messages, params),
        )

    def generate_aside(self, request_id: int, messages: Sequence[Message], params: GenerationParams) -> None:
        """Have something written that nobody waits for: it gives way to whatever else is asked for.

        Only `aside_finished` tells of it, if it comes to an end; it leaves the worker as idle as it was.
        """
        if self._closing:
            return
        title = tr("A text in the background")
        job = Job("aside", title, lambda: self._operations.aside(job, request_id, messages, params))
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
            lambda job: self._operations.prepare_starter(job, force),
        )

    @Slot(str, object)
    def download(self, repo_id: str, folder: Path, force: bool = False) -> None:
        """Download a model, with `force` on a full disk too; `model_ready` brings its folder."""
        self._submit(
            "download", tr("The download"), lambda job: self._operations.download(job, repo_id, folder, force)
        )

    @Slot()
    def close_model(self) -> None:
        """Give back the model's memory."""
        self._submit("close_model", tr("Closing the model"), lambda _: self._operations.close())

    @Slot()
    def cancel(self) -> None:
        """Stop what runs and drop what waits: `cancelled` reports each, or `finished` a begun answer."""
        self.cancel_asides()
        for job in list(self._jobs):
            job.token.cancel()

    @Slot()
    def stop_answers(self) -> None:
        """Stop the answer that is written and drop those that wait; a model to be loaded is still loaded."""
        for job in self._jobs:
            if job.operation == "generate":
                job.token.cancel()

    @Slot()
    def flush(self) -> None:
        """Deliver now what the engine has said and the window has not heard yet."""
        self._flush_timer.stop()
        self._since_flush.start()
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
        self._submit("close_model", tr("Closing the model"), lambda _: self._operations.close())
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
