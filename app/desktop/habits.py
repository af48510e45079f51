"""Joins the habits of a desktop program to the window, its worker and its settings."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from app.desktop.announcer import Announcer
from app.desktop.awake import awake_here
from app.desktop.motion import apply_motion
from app.desktop.notices import notices_here
from app.desktop.watch import SleepGuard, Teller, WorkWatch
from app.settings import SettingsStore, registry
from app.widgets.announce import announce
from app.window import MainWindow
from app.worker import EngineWorker


class WindowOnDesk:
    """The main window among the desktop's others."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def is_watched(self) -> bool:
        """Whether it, or a dialog of it, is in front."""
        return QApplication.activeWindow() is not None

    def alert(self) -> None:
        """Mark it in the task bar until it is looked at."""
        QApplication.alert(self._window, 0)


class Habits(QObject):
    """Works by itself until `end`."""

    def __init__(self, window: MainWindow, worker: EngineWorker, settings: SettingsStore) -> None:
        super().__init__(window)
        self._settings = settings
        watch = WorkWatch(worker, self)
        self.teller = Teller(watch, notices_here(window), settings, WindowOnDesk(window))
        self.sleep_guard = SleepGuard(worker, awake_here(), settings, self)
        self.announcer = Announcer(window.session, settings, partial(announce, window.page.view), self)
        self._unsubscribe = settings.subscribe(self._on_setting)
        apply_motion(settings)

    def end(self) -> None:
        """The program ends: give back what the desktop was asked for."""
        self._unsubscribe()
        self.sleep_guard.end()

    def _on_setting(self, key: str, _value: object) -> None:
        if key == registry.REDUCED_MOTION.key:
            apply_motion(self._settings)
