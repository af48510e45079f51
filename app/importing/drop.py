"""Files that are dropped on the window: chats are imported, texts are attached."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QMainWindow

from app.widgets.mime import local_files


class DropWindow(QMainWindow):
    """A main window that takes files."""

    files_dropped = Signal(object)  # list of Path

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Take files; the rest goes where it went before."""
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Say which files were dropped."""
        paths = local_files(event.mimeData())
        if paths:
            event.acceptProposedAction()
            self.files_dropped.emit(paths)
