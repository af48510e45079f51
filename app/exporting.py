"""Export of chats: asks what and where to, reads from the store, writes in a thread of its own."""

from __future__ import annotations

import weakref
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.desktop.long_work import EXPORT
from app.dialogs import show_error
from app.export.dialog import ExportDialog
from app.export.job import ExportJob, run_export, saved_words
from app.i18n import tr
from app.settings import SettingsStore, registry
from app.settings.option import Value
from app.storage import ChatStore, Conversation, MessageRow
from app.storage.thread import StorageThread
from app.storage.waiting import wait_for
from app.widgets.task import Task
from engine.errors import EngineError
from engine.progress import CancelToken, ProgressCallback


class ExportFlow(QObject):
    """One dialog at a time; the window stays usable while files are written."""

    saved = Signal(str)  # what to tell the user

    def __init__(self, window: QWidget, storage: StorageThread, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window, self._storage, self._settings = window, storage, settings
        self._tokens: weakref.WeakSet[CancelToken] = weakref.WeakSet()  # of the exports that run

    def ask(self, shown: Conversation | None, chosen: tuple[int, ...] = ()) -> ExportDialog:
        """Ask what to export; `shown` is the chat on the screen, `chosen` were chosen in the list."""
        dialog = ExportDialog(self._settings, shown, self._window, chosen=chosen)
        dialog.export_requested.connect(self.export)

        def all_chats(store: ChatStore) -> list[Conversation]:
            return [line.conversation for line in store.conversations(archived=None)]

        self._storage.run(all_chats).then(dialog.set_chats)
        dialog.open()
        return dialog

    def export(self, job: ExportJob) -> Task[Path]:
        """Write what a job says; remembers its choices for the next time."""
        self._remember(job)

        def work(report: ProgressCallback, cancel: CancelToken) -> Path:
            def read(chat_id: int) -> tuple[Conversation, list[MessageRow]]:
                return wait_for(self._storage, cancel, _read, chat_id)

            return run_export(job, read, report, cancel)

        done, failed = partial(self._tell, job), partial(show_error, self._window)
        task: Task[Path] = Task(self._window, tr("Exporting"), work, done, failed, kind=EXPORT)
        self._tokens.add(task.token)
        return task

    def stop(self) -> None:
        """Cancel what is being written: the program closes."""
        for token in self._tokens:
            token.cancel()

    def _tell(self, job: ExportJob, path: Path) -> None:
        self.saved.emit(saved_words(job, path))

    def _remember(self, job: ExportJob) -> None:
        values: dict[str, Value] = {
            registry.EXPORT_FORMAT.key: job.kind.name,
            registry.EXPORT_SYSTEM_PROMPT.key: job.options.system_prompt,
            registry.EXPORT_SETTINGS.key: job.options.settings,
            registry.EXPORT_STATISTICS.key: job.options.statistics,
            registry.EXPORT_BRANCHES.key: job.options.branches,
            registry.EXPORT_FOLDER.key: str(job.path.parent),
        }
        try:
            self._settings.update(values)
        except EngineError as error:
            show_error(self._window, error)


def _read(store: ChatStore, chat_id: int) -> tuple[Conversation, list[MessageRow]]:
    return store.conversation(chat_id), store.messages(chat_id, all_versions=True)
