"""Import of chats: asks for files, reads them, asks about what is there already, saves, and reports.

Files are read and chats are saved in a thread of their own; nothing is saved before everything was read.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.desktop.long_work import IMPORT
from app.dialogs import show_error
from app.i18n import tr
from app.importing.dialogs import ask_about_known, show_report
from app.importing.outcome import Contents
from app.importing.reading import read_files
from app.importing.saving import save_chats
from app.importing.words import Imported, taken_words
from app.paths import documents_dir
from app.settings import SettingsStore, registry
from app.storage.incoming import IncomingChat, insert_chat, twins
from app.storage.rows import Conversation
from app.storage.thread import StorageThread
from app.storage.waiting import wait_for
from app.widgets.task import Task
from engine.progress import CancelToken, ProgressCallback

_Read = tuple[Contents, list[bool]]  # the second: which chats are in the list already


class ImportFlow(QObject):
    """`imported` comes when chats have been added; `told` when there is no more to say than their number."""

    imported = Signal(object)  # tuple of ids, the newest last
    told = Signal(str)

    def __init__(self, window: QWidget, storage: StorageThread, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window, self._storage, self._settings = window, storage, settings
        self._tokens: weakref.WeakSet[CancelToken] = weakref.WeakSet()  # of the imports that run

    def ask(self) -> QFileDialog:
        """Ask for files and import them."""
        folder = self._settings.get(registry.EXPORT_FOLDER) or str(documents_dir())
        dialog = QFileDialog(self._window, tr("Import chats"), folder)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        chats, everything = tr("Chats of Fiddler Chat or ChatGPT"), tr("All files")
        dialog.setNameFilters([f"{chats} (*.json *.zip)", f"{everything} (*)"])
        dialog.filesSelected.connect(lambda files: self.import_files([Path(file) for file in files]))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def import_files(self, paths: Sequence[Path]) -> None:
        """Import the chats in the files at `paths`."""

        def work(report: ProgressCallback, cancel: CancelToken) -> _Read:
            contents = read_files(paths, report, cancel)
            return contents, wait_for(self._storage, cancel, twins, contents.chats)

        task: Task[_Read] = Task(
            self._window, tr("Importing"), work, self._on_read, partial(show_error, self._window), kind=IMPORT
        )
        self._tokens.add(task.token)

    def stop(self) -> None:
        """Cancel what runs: the program closes."""
        for token in self._tokens:
            token.cancel()

    def _on_read(self, read: _Read) -> None:
        contents, known = read
        everything = contents.chats
        if not any(known):
            self._save(contents, everything)
            return
        others = [chat for chat, is_known in zip(everything, known, strict=True) if not is_known]
        ask_about_known(
            self._window,
            sum(known),
            len(known),
            skip=partial(self._save, contents, others),
            again=partial(self._save, contents, everything),
        )

    def _save(self, contents: Contents, chats: Sequence[IncomingChat]) -> None:
        begun = Imported(
            skipped=len(contents.chats) - len(chats),
            left_out=contents.left_out,
            refused=tuple(contents.refused),
        )

        def work(report: ProgressCallback, cancel: CancelToken) -> Imported:
            def insert(chat: IncomingChat) -> Conversation:
                return wait_for(self._storage, cancel, insert_chat, chat)

            return save_chats(chats, begun, insert, report, cancel)

        task: Task[Imported] = Task(
            self._window,
            tr("Importing"),
            work,
            self._on_saved,
            partial(show_error, self._window),
            kind=IMPORT,
        )
        self._tokens.add(task.token)

    def _on_saved(self, imported: Imported) -> None:
        if imported.chats:
            self.imported.emit(imported.chats)
        if imported.complete:
            self.told.emit(taken_words(imported))
        else:
            show_report(self._window, imported)
