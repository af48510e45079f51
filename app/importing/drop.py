"""Files that are dropped on the window are imported."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QMainWindow

from app.importing.sources import SUFFIXES


class DropWindow(QMainWindow):
    """A main window that takes files with chats."""

    files_dropped = Signal(object)  # list of Path

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take what can be imported; the rest goes where it went before."""
        if importable(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Say which files were dropped."""
        paths = importable(event.mimeData())
        if paths:
            event.acceptProposedAction()
            self.files_dropped.emit(paths)


def importable(data: QMimeData) -> list[Path]:
    """The local files in what is dragged, if all of them may hold chats."""
    urls = data.urls()
    paths = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    fitting = [path for path in paths if path.suffix.lower() in SUFFIXES]
    return fitting if fitting and len(fitting) == len(urls) else []
