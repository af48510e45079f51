"""Export of a conversation: asks where to, reads it from the store, writes it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QWidget

from app.dialogs import show_error
from app.export import JSON, KINDS, ExportKind, free_path, save_conversation, suggested_name
from app.i18n import tr
from app.paths import documents_dir
from app.storage import ChatStore, Conversation, MessageRow
from app.storage.thread import StorageThread
from engine.errors import EngineError, FileError


class ExportFlow(QObject):
    """One export at a time; the window stays usable."""

    def __init__(self, window: QWidget, storage: StorageThread) -> None:
        super().__init__(window)
        self._window, self._storage = window, storage
        self._folder = documents_dir()

    def ask(self, conversation: Conversation) -> None:
        """Ask for a file and write the conversation to it."""
        dialog = QFileDialog(self._window, tr("Export chat"), str(self._folder))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilters([kind.filter for kind in KINDS])
        dialog.setDefaultSuffix(KINDS[0].suffix)
        dialog.selectFile(free_path(self._folder, suggested_name(conversation.title, KINDS[0].suffix)).name)
        dialog.filterSelected.connect(lambda chosen: dialog.setDefaultSuffix(_kind_of_filter(chosen).suffix))
        dialog.fileSelected.connect(lambda file: self.save(conversation, Path(file)))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def save(self, conversation: Conversation, path: Path) -> None:
        """Write the conversation to `path`; its suffix says in which format."""
        kind = JSON if path.suffix.lower() == JSON.suffix else KINDS[0]
        self._folder = path.parent

        def write(store: ChatStore) -> EngineError | None:
            # In the store's thread: a network folder may be slow, and the window must not wait for it.
            rows: list[MessageRow] = store.messages(conversation.id, all_versions=kind is JSON)
            try:
                save_conversation(path, conversation, rows, kind)
            except FileError as error:
                return error
            return None

        self._storage.run(write).then(self._explain)

    def _explain(self, error: EngineError | None) -> None:
        if error is not None:
            show_error(self._window, error)


def _kind_of_filter(chosen: str) -> ExportKind:
    return next((kind for kind in KINDS if kind.filter == chosen), KINDS[0])
