"""Takes figures out of the panel: the history as a table, the panel as a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QObject
from PySide6.QtGui import QImage, QImageWriter
from PySide6.QtWidgets import QFileDialog, QWidget

from app.dialogs import show_error
from app.export import free_path, suggested_name
from app.i18n import tr
from app.panel.csv_table import to_csv
from app.panel.history import ChatFigures
from app.paths import documents_dir
from app.widgets.background import Background
from engine.errors import EngineError
from engine.files import write_atomically


class PanelFiles(QObject):
    """Asks for a file and writes it in another thread, as a network folder may be slow."""

    def __init__(self, owner: QWidget) -> None:
        super().__init__(owner)
        self._owner = owner
        self._folder = documents_dir()
        self._background: Background[None] = Background(tr("Saving the figures"), self)

    def ask_table(self, chat: ChatFigures) -> None:
        """Save the history of a chat."""
        name = tr("Fiddler Chat history")
        self._ask(tr("Save history"), name, ".csv", tr("Table"), lambda path: self.save_table(path, chat))

    def ask_picture(self, picture: QImage) -> None:
        """Save a picture of the panel."""
        name = tr("Fiddler Chat panel")
        self._ask(
            tr("Save picture"), name, ".png", tr("Picture"), lambda path: self.save_picture(path, picture)
        )

    def save_table(self, path: Path, chat: ChatFigures) -> None:
        """Write the history to `path`."""
        self._write(lambda: write_atomically(path, to_csv(chat)))

    def save_picture(self, path: Path, picture: QImage) -> None:
        """Write a picture to `path`."""
        self._write(lambda: write_atomically(path, png(picture)))

    def _ask(self, title: str, name: str, suffix: str, kind: str, save: Callable[[Path], None]) -> None:
        dialog = QFileDialog(self._owner.window(), title, str(self._folder))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{kind} (*{suffix})")
        dialog.setDefaultSuffix(suffix)
        dialog.selectFile(free_path(self._folder, suggested_name(name, suffix)).name)
        dialog.fileSelected.connect(lambda file: self._chosen(Path(file), save))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _chosen(self, path: Path, save: Callable[[Path], None]) -> None:
        self._folder = path.parent
        save(path)

    def _write(self, write: Callable[[], None]) -> None:
        def explain(error: EngineError) -> None:
            show_error(self._owner.window(), error)

        self._background.run(write, lambda _: None, explain)


def png(picture: QImage) -> bytes:
    """A picture as a PNG file."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(picture)
    return bytes(buffer.data().data())
