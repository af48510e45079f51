"""Scenes of everything that can go wrong: no model, no memory, a full disk, a damaged database."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from PySide6.QtWidgets import QApplication

from app.dialogs import MessageDialog, ask_anyway, show_error
from app.errors import MemoryShortageError, UnexpectedError
from app.paths import database_path
from app.settings import registry
from engine.errors import EngineError, ShortageError
from installer.gallery import samples
from installer.gallery.studio import Scene, Shot, Studio

NO_ROOM = ShortageError(
    "Mixtral-8x7B-Instruct-v0.1 does not fit into this computer's memory.",
    why="It needs 93.4 GB of RAM, and 61.2 GB are free.",
    action="Close other programs, hold the experts in 4 bits, or choose a smaller model.",
)
NOT_THERE = EngineError(
    "The model could not be loaded.",
    why="There is no folder /media/somebody/Backup/models/Mixtral-8x7B-Instruct-v0.1 any more.",
    action="Connect the drive that it is on, or choose another model.",
)


def no_model(studio: Studio) -> Iterator[Shot]:
    """No model is loaded, is being loaded, could not be loaded."""
    window = studio.open()
    studio.worker.close_model()
    studio.wait(lambda: window.session.model is None)
    yield Shot("trouble-no-model", window)
    yield Shot("trouble-no-model-640", window, (640, 700))
    window.resize(1280, 800)
    studio.factory.load_gate = threading.Event()
    window.model.load_saved()
    studio.settle(0.4)
    yield Shot("trouble-loading", window)
    studio.factory.load_error = NOT_THERE
    studio.factory.load_gate.set()
    studio.settle(0.5)
    yield Shot("trouble-not-loaded", window)
    yield Shot("trouble-not-loaded-640", window, (640, 700))
    window.resize(1280, 800)
    studio.factory.load_error = NO_ROOM
    window.model.load_saved()
    studio.settle(0.5)
    yield Shot("trouble-no-room", window)


def out_of_memory(studio: Studio) -> Iterator[Shot]:
    """An answer that fails: memory ran out, a fault in the program."""
    studio.put(*samples.CHATS)
    window = studio.open()
    for name, error in (
        ("memory", MemoryShortageError("The answer")),
        ("fault", UnexpectedError("The answer", ValueError("any"))),
    ):
        studio.factory.script = ["A few words that were", error]
        window.session.new_chat()
        window.session.send("Tell me more about it.")
        studio.wait(lambda: window.session.busy)
        studio.wait(lambda: not window.session.busy)
        studio.settle(0.3)
        yield Shot(f"trouble-{name}", window)
        yield Shot(f"trouble-{name}-640", window, (640, 700))
        window.resize(1280, 800)


def full_disk(studio: Studio) -> Iterator[Shot]:
    """A disk that fills up while one writes."""
    studio.factory.status = samples.workstation()
    window = studio.open()
    full = "PRAGMA max_page_count = 1"
    window._storage.run(lambda store: store._db.execute(full).fetchone()[0])
    window.page.composer.set_text("A text that finds no room on the disk any more. " * 500)
    window.page.composer.button.click()
    studio.wait(lambda: window.findChildren(MessageDialog))
    studio.settle(0.3)
    yield Shot("trouble-full-disk-window", window)
    yield Shot("trouble-full-disk", window.findChildren(MessageDialog)[0])
    for dialog in window.findChildren(MessageDialog):
        dialog.reject()


def damaged(studio: Studio) -> Iterator[Shot]:
    """A database that is damaged, and a calibration that does not fit any more."""
    studio.put(*samples.CHATS)
    path = database_path()
    content = bytearray(path.read_bytes())
    content[100:300] = b"\xee" * 200
    path.write_bytes(content)
    studio.factory.status = samples.workstation()
    window = studio.open()
    studio.wait(lambda: window.page.notice.text)
    window._show_calibration("The calibration was made with another graphics card (GeForce RTX 3060).")
    studio.settle(0.3)
    yield Shot("trouble-damaged", window)
    yield Shot("trouble-damaged-640", window, (640, 700))


def messages(studio: Studio) -> Iterator[Shot]:
    """Errors in a window of their own."""
    studio.settings.set(registry.PANEL_VISIBLE, False)
    window = studio.open()
    for name, dialog in (
        ("error", show_error(window, NOT_THERE, retry=lambda: None)),
        ("anyway", ask_anyway(window, NO_ROOM, lambda: None)),
        ("alone", show_error(None, MemoryShortageError("The export"))),
    ):
        studio.settle(0.3)
        yield Shot(f"trouble-dialog-{name}", dialog)
        dialog.reject()
    QApplication.processEvents()


SCENES: tuple[Scene, ...] = (no_model, out_of_memory, full_disk, damaged, messages)
