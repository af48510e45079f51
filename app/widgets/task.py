"""Work that takes its time: in another thread, with a window that shows how far it is and can cancel it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from PySide6.QtCore import QCoreApplication, QElapsedTimer, QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from app.i18n import tr
from app.widgets.background import Background
from app.widgets.progress import LabelledProgress
from app.widgets.running import running_tasks
from engine.errors import Cancelled, EngineError
from engine.progress import CancelToken, Progress, ProgressCallback

Result = TypeVar("Result")
Work = Callable[[ProgressCallback, CancelToken], Result]

SHOW_AFTER_MS = 400  # shorter work needs no window
_LOOK_MS = 100
_WIDTH_IN_CHARACTERS = 56


class ProgressDialog(QDialog):
    """How far the work is. Escape, the close button and Cancel all ask for its end."""

    def __init__(self, title: str, cancel: CancelToken, parent: QWidget | None) -> None:
        super().__init__(parent)
        self._cancel = cancel
        self.setWindowTitle(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.progress = LabelledProgress(self, even=False)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(16)
        column.addWidget(self.progress)
        column.addWidget(self.buttons)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * _WIDTH_IN_CHARACTERS)

    def reject(self) -> None:
        """Ask the work to end; the window goes when it has."""
        self._cancel.cancel()
        self.buttons.setEnabled(False)
        self.progress.start(tr("Cancelling…"))


class Task(QObject, Generic[Result]):
    """One piece of work. Deletes itself when it has ended and the outcome has been told.

    `title` is the work as the subject of a sentence. A cancelled task tells nothing, unless the work itself
    returned something. The habits of the program know long work by its `kind` (`app.desktop.long_work`).
    """

    def __init__(
        self,
        window: QWidget,
        title: str,
        work: Work[Result],
        on_done: Callable[[Result], object],
        on_failed: Callable[[EngineError], object],
        *,
        kind: str = "",
    ) -> None:
        super().__init__(window)
        self.token = CancelToken()
        self._latest = Progress(title)
        self._on_done, self._on_failed = on_done, on_failed
        self.dialog = ProgressDialog(title, self.token, window)
        self._timer = QTimer(self, interval=_LOOK_MS)
        self._timer.timeout.connect(self._look)
        QTimer.singleShot(SHOW_AFTER_MS, self, self._show)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self._cancel)  # a slot: goes with this object
        self._kind = kind
        self._since = QElapsedTimer()
        self._since.start()
        running_tasks().begin(kind)
        self._background: Background[Result] = Background(title, self)
        self._background.run(lambda: work(self._note, self.token), self._done, self._failed)

    @Slot()
    def _cancel(self) -> None:
        self.token.cancel()

    def _note(self, progress: Progress) -> None:
        self._latest = progress  # in the work's thread; the timer fetches it

    @Slot()
    def _show(self) -> None:
        if self._background.busy:
            self._look()
            self._timer.start()
            self.dialog.open()

    @Slot()
    def _look(self) -> None:
        if not self.token.cancelled:
            self.dialog.progress.show_progress(self._latest)

    def _done(self, result: Result) -> None:
        self._end(succeeded=True)
        self._on_done(result)

    def _failed(self, error: EngineError) -> None:
        cancelled = isinstance(error, Cancelled)
        self._end(succeeded=None if cancelled else False)
        if not cancelled:
            self._on_failed(error)

    def _end(self, *, succeeded: bool | None) -> None:
        if self.token.cancelled:
            succeeded = None  # whoever asked for the end knows of it
        running_tasks().end(self._kind, self._since.elapsed() / 1000, succeeded)
        self._timer.stop()
        self.dialog.done(QDialog.DialogCode.Accepted)
        self.dialog.deleteLater()
        self.deleteLater()
