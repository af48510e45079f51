"""Where the scenes are played: the program's window, a scripted engine, and a camera."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QEvent, QEventLoop, QThreadPool
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.formulas import formulas
from app.paths import database_path
from app.settings import SettingsStore, registry
from app.storage.incoming import IncomingChat, insert_chat
from app.storage.opening import open_store
from app.storage.thread import StorageThread
from app.theme import theme
from app.window import MainWindow
from app.worker import EngineWorker
from engine.paths import DATA_DIR_VARIABLE
from tests.app.fakes import ScriptedFactory

_PATIENCE = 20  # seconds
_SETTLING = 0.15  # seconds that layouts, animations and short timers get before a picture is taken


class Shot(NamedTuple):
    """What to take a picture of. `size` is what the window is made to have; None: as it is."""

    name: str
    widget: QWidget
    size: tuple[int, int] | None = None


Scene = Callable[["Studio"], Iterator[Shot]]


class Studio:
    """One program without a screen, with data of its own for as long as `studio` runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.factory = ScriptedFactory()
        self.settings = SettingsStore(None)
        self.settings.set(registry.WIZARD_COMPLETED, True)
        self.settings.set(registry.SUGGEST_TITLES, False)
        self.settings.set(registry.MODEL_PATH, str(folder))
        self.worker = EngineWorker(self.factory)
        self._storage: StorageThread | None = None
        self._window: MainWindow | None = None

    @property
    def window(self) -> MainWindow:
        """The window that `open` has opened."""
        assert self._window is not None
        return self._window

    def put(self, *chats: IncomingChat) -> None:
        """Save chats, the last of them on top of the list; before `open`."""
        store = open_store(database_path()).store
        for chat in chats:
            insert_chat(store, chat)
        store.close()

    def open(self, *, model: bool = True, size: tuple[int, int] = (1280, 800)) -> MainWindow:
        """The main window, once the model is loaded if there is to be one."""
        self._storage = StorageThread(database_path())
        self._window = window = MainWindow(self._storage, self.worker, self.settings)
        window.resize(*size)
        window.show()
        window.activateWindow()
        window.begin()
        if model:
            self.wait(lambda: window.session.model is not None and self.worker.idle)
        return window

    def show(self, title: str) -> None:
        """Open the chat with this title."""
        chats = self.window.sidebar.model
        self.wait(lambda: title in [str(chats.index(row).data()) for row in range(chats.rowCount())])
        row = [str(chats.index(row).data()) for row in range(chats.rowCount())].index(title)
        self.window.session.open(chats.ids[row])
        self.wait(lambda: self.window.windowTitle().startswith(title))

    def wait(self, condition: Callable[[], object]) -> None:
        """Let the program run until something is so."""
        until = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError("what the scene waits for has not happened")
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)

    def settle(self, seconds: float = _SETTLING) -> None:
        """Let the program run for a moment."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
            time.sleep(0.002)
        self.wait(lambda: not formulas().busy)
        QApplication.processEvents()

    def end(self) -> None:
        """Close everything."""
        for gate in (self.factory.gate, self.factory.load_gate, self.factory.calibrate_gate):
            if gate is not None:
                gate.set()
        for widget in QApplication.topLevelWidgets():
            widget.close()
        self.worker.shutdown(5000)
        if self._storage is not None:
            self._storage.close()
        QThreadPool.globalInstance().waitForDone(5000)
        QApplication.processEvents()  # what the worker's end has to say, before those who hear it are gone
        for widget in QApplication.topLevelWidgets():
            widget.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@contextmanager
def studio() -> Iterator[Studio]:
    """A studio with a fresh data folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[DATA_DIR_VARIABLE] = str(Path(folder) / "data")
        place = Studio(Path(folder))
        try:
            yield place
        finally:
            place.end()


def play(scene: Scene, out: Path, themes: Sequence[str]) -> None:
    """Play a scene and take its pictures, each in all themes: FOLDER/<name>-<theme>.png."""
    theme().apply(themes[0])
    with studio() as place:
        for shot in scene(place):
            if shot.size is not None:
                shot.widget.resize(*shot.size)
            for name in themes:
                theme().apply(name)
                place.settle()
                target = out / f"{shot.name}-{name}.png"
                if not shot.widget.grab().save(str(target)):
                    raise OSError(f"{target} could not be written")
                print(target)
