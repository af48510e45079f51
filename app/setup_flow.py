"""Opens the wizard and the settings from the main window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.settings import SettingsStore
from app.window import MainWindow
from app.worker import EngineWorker


class SetupFlow(QObject):
    """One dialog at a time; the chat stays as it is."""

    def __init__(self, window: MainWindow, worker: EngineWorker, settings: SettingsStore) -> None:
        super().__init__(window)
        self._window, self._worker, self._settings = window, worker, settings

    @Slot()
    def open_wizard(self) -> None:
        """Choose a model, get it, measure it."""

    @Slot()
    def open_settings(self) -> None:
        """Change how the program looks and works."""
