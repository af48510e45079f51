"""Opens the wizard and the settings from the main window, one dialog at a time.

Their modules are imported when they are opened: together they take as long to import as the window itself,
which is to be on the screen first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QDialog

from app.settings import SettingsStore
from app.window import MainWindow
from app.worker import EngineWorker

if TYPE_CHECKING:
    from app.wizard.offers import Knowledge


class SetupFlow(QObject):
    """The chat stays as it is meanwhile; what the wizard loads, the window hears from the worker."""

    def __init__(
        self,
        window: MainWindow,
        worker: EngineWorker,
        settings: SettingsStore,
        knowledge: Knowledge | None = None,
    ) -> None:
        super().__init__(window)
        self._window, self._worker, self._settings, self._knowledge = window, worker, settings, knowledge
        self.dialog: QDialog | None = None
        window.setup_requested.connect(self.open_wizard)
        window.settings_requested.connect(self.open_settings)
        window.calibration_requested.connect(self.recalibrate)

    @Slot()
    def open_wizard(self) -> None:
        """Set the program up for the first time, or choose another model."""
        if self._raise():
            return
        from app.wizard.visit import choose_model, is_needed, set_up

        if is_needed(self._settings):
            self._open(set_up(self._worker, self._settings, self._window, self._knowledge))
        else:
            status = self._window.model.status
            self._open(choose_model(self._worker, self._settings, status, self._window, self._knowledge))

    @Slot()
    def recalibrate(self) -> None:
        """Measure this computer again with the model that is in use."""
        model = self._window.model.saved_model
        if model is None or self._raise():
            return
        from app.wizard.visit import recalibrate

        status = self._window.model.status
        self._open(recalibrate(self._worker, self._settings, model, status, self._window, self._knowledge))

    @Slot()
    def open_settings(self) -> None:
        """Change how the program looks and works."""
        if self._raise():
            return
        from app.preferences.dialog import PreferencesDialog

        window = self._window
        dialog = PreferencesDialog(
            self._settings,
            window.presets,
            self._worker,
            window.model.status,
            window.model.defaults,
            window,
            self._knowledge,
            window.shortcuts,
        )
        dialog.restart_requested.connect(window.restart)
        self._open(dialog)

    def _open(self, dialog: QDialog) -> None:
        self.dialog = dialog
        dialog.finished.connect(self._forget)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def _raise(self) -> bool:
        if self.dialog is None:
            return False
        self.dialog.raise_()
        self.dialog.activateWindow()
        return True

    @Slot()
    def _forget(self) -> None:
        self.dialog = None
        self._window.page.focus_composer()
