"""Scenes of the main window: what is read, what is written, the list beside it and the panel."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from app.attachments.form import compose
from app.desktop.last_run import BadEnding
from app.panel.machine import GpuReading, MachineReading, Use
from app.settings import registry
from installer.gallery import samples
from installer.gallery.studio import Scene, Shot, Studio

NARROW = ((760, 700), (640, 700))
GIB = 2**30
_READING = MachineReading(
    Use(128 * GIB, 97 * GIB, 88 * GIB), 0.94, 0.9, GpuReading(Use(24 * GIB, 22 * GIB, 21 * GIB), 0.41, 63)
)


def _large(studio: Studio, *, panel: bool = False) -> None:
    """A large model on a computer with a graphics card, and chats."""
    studio.factory.status = samples.workstation()
    studio.settings.set(registry.PANEL_VISIBLE, panel)
    studio.put(*samples.CHATS)
    studio.open()


def empty(studio: Studio) -> Iterator[Shot]:
    """The first sight."""
    studio.settings.set(registry.PANEL_VISIBLE, True)
    window = studio.open()
    yield Shot("main-empty", window)
    for size in NARROW:
        yield Shot(f"main-empty-{size[0]}", window, size)


def texts(studio: Studio) -> Iterator[Shot]:
    """Answers with everything that has to be drawn."""
    _large(studio)
    titles = {
        "code": samples.CODE_CHAT,
        "table": samples.TABLE_CHAT,
        "maths": samples.MATHS_CHAT,
        "east-asian": samples.EAST_ASIAN_CHAT,
        "arabic": samples.ARABIC_CHAT,
        "branches": samples.BRANCHES_CHAT,
        "files": samples.FILES_CHAT,
    }
    for name, chat in titles.items():
        studio.show(chat.title)
        studio.settle(0.5)
        yield Shot(f"main-{name}", studio.window, (1280, 900))
    for name in ("code", "table", "maths", "branches", "files"):
        studio.show(titles[name].title)
        studio.settle(0.3)
        for size in NARROW:
            yield Shot(f"main-{name}-{size[0]}", studio.window, size)


def editing(studio: Studio) -> Iterator[Shot]:
    """A question being changed, and the menu of a message."""
    _large(studio)
    studio.show(samples.BRANCHES_CHAT.title)
    yield Shot("menu-message", studio.window.page.view.views[1].tools.menu())
    studio.window.menus.actions["edit_last"].trigger()
    yield Shot("main-editing", studio.window)


def searching(studio: Studio) -> Iterator[Shot]:
    """The search, and one that finds nothing; the archive; a deletion that can be taken back."""
    _large(studio)
    side = studio.window.sidebar
    studio.wait(lambda: side.model.rowCount() > 3)
    side.search.setFocus()
    side.search.setText("the")
    studio.settle(0.6)
    yield Shot("main-search", studio.window)
    side.search.setText("nowhere to be found")
    studio.settle(0.6)
    yield Shot("main-search-nothing", studio.window)
    side.search.clear()
    studio.show(samples.FILES_CHAT.title)
    studio.window.menus.actions["delete"].trigger()
    studio.settle(0.4)
    yield Shot("main-undo", studio.window)
    studio.window.menus.actions["archived"].trigger()
    studio.settle(0.4)
    yield Shot("main-archive", studio.window)


def writing(studio: Studio) -> Iterator[Shot]:
    """An answer that is being written, a message that waits, and files that are attached."""
    _large(studio, panel=True)
    window, factory = studio.window, studio.factory
    studio.show(samples.FILES_CHAT.title)
    window.page.composer.set_content(
        compose([samples.NOTES, samples.SCRIPT], "Compare these two.\nWhat follows for the laptop?")
    )
    studio.settle(0.4)
    yield Shot("composer-files", window)
    for size in NARROW:
        yield Shot(f"composer-files-{size[0]}", window, size)
    window.resize(1280, 800)
    window.page.composer.set_content("")
    factory.gate = threading.Event()
    factory.script = ["The first lines of an answer, with `code` and **more** to", " come."]
    window.session.send("Go on, then: what is the next step?")
    studio.wait(lambda: window.session.busy and factory.emitted)
    studio.settle(0.4)
    yield Shot("main-streaming", window)
    window.page.composer.set_content("And after that?\nIn one line.")
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    studio.settle(0.3)
    yield Shot("main-waiting", window)
    for size in NARROW:
        yield Shot(f"main-waiting-{size[0]}", window, size)
    window.page.composer.waiting.remove_requested.emit()
    factory.gate.set()
    studio.wait(lambda: not window.session.busy)


def panel(studio: Studio) -> Iterator[Shot]:
    """The live panel with figures, from its top to its end."""
    _large(studio, panel=True)
    shown = studio.window.panel
    shown._sampler._read = lambda _index: _READING
    studio.show(samples.BRANCHES_CHAT.title)
    studio.show(samples.CODE_CHAT.title)
    studio.settle(1.4)
    yield Shot("panel", studio.window)
    content = shown.widget()
    yield Shot("panel-whole", content)
    studio.window.panel.setFocus()
    yield Shot("panel-1000", studio.window, (1000, 800))


def menus(studio: Studio) -> Iterator[Shot]:
    """The menus, the overlay of shortcuts, and what is said above the conversation."""
    _large(studio)
    window = studio.window
    studio.show(samples.CODE_CHAT.title)
    for number, menu in enumerate(window.menuBar().findChildren(QMenu)):
        yield Shot(f"menu-{number}", menu)
    window.show_bad_ending(BadEnding("2026-03-12 09:30:00", "0.1.0", ""))
    window._tell("Saved “A cache in Python” as /home/somebody/Documents/A cache in Python.md.")
    studio.settle()
    yield Shot("main-notices", window)
    for size in NARROW:
        yield Shot(f"main-notices-{size[0]}", window, size)
    window.resize(1280, 800)
    window.menus.actions["shortcuts"].trigger()
    studio.settle(0.4)
    yield Shot("shortcuts", window)
    for size in NARROW:
        yield Shot(f"shortcuts-{size[0]}", window, size)


SCENES: tuple[Scene, ...] = (empty, texts, editing, searching, writing, panel, menus)
