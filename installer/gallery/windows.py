"""Scenes of the windows beside the main one: parameters, details, settings, export, log, faults."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

from PySide6.QtWidgets import QApplication, QDialog

from app.attachments.viewer import AttachmentDialog
from app.chat.notices import Action
from app.desktop.last_run import BadEnding
from app.dialogs import confirm
from app.errors import UnexpectedError
from app.fault_dialog import FaultDialog, show_ending
from app.importing.dialogs import ask_about_known, show_report
from app.importing.outcome import LeftOut, Refused
from app.importing.words import Imported
from app.logs.lines import LastLines, Line
from app.logs.window import LogWindow
from app.menus import AboutDialog
from app.paths import profiles_dir
from app.preferences.dialog import PreferencesDialog
from app.preferences.history_dialog import HistoryDialog
from app.presets.dialog import ParametersDialog, PresetDialog
from app.presets.name_dialog import NameDialog
from app.presets.preset import ChatSetup, Preset
from app.widgets.task import ProgressDialog
from app.window import MainWindow
from engine.profile_store import save_profile
from engine.progress import CancelToken, Progress
from installer.gallery import samples
from installer.gallery.studio import Scene, Shot, Studio
from tests.app.wizard_fakes import WORKSTATION, ScriptedKnowledge, make_profile

_LOG = """2026-03-12 09:30:00 INFO app.main: Fiddler Chat 0.1.0 starts
2026-03-12 09:30:01 INFO app.worker: loading /home/somebody/models/Mixtral-8x7B-Instruct-v0.1
2026-03-12 09:30:44 WARNING engine.bank: 3 of 32 layers could not be registered with the graphics card
2026-03-12 09:31:02 ERROR app.worker: the generation failed
Traceback (most recent call last):
  File "app/worker.py", line 211, in run
RuntimeError: CUDA error: out of memory
"""


def dialogs(studio: Studio) -> Iterator[Shot]:
    """Every window that opens over the main one."""
    window = _opened(studio)
    for name, make in _DIALOGS.items():
        dialog = make(window)
        dialog.show()
        studio.settle(0.3)
        yield Shot(f"dialog-{name}", dialog)
        dialog.done(0)


def flows(studio: Studio) -> Iterator[Shot]:
    """Windows that the menus open: parameters, details, what was deleted, the export."""
    window = _opened(studio)
    window.menus.actions["parameters"].trigger()
    yield Shot("parameters", _dialog(studio))
    _dialog(studio).reject()
    window.page.show_details(window.session.messages[-1].id)
    yield Shot("details", _dialog(studio))
    _dialog(studio).reject()
    window.menus.actions["export"].trigger()
    studio.settle(0.4)
    yield Shot("export", _dialog(studio))
    _dialog(studio).reject()
    window.page.turns.act(Action.DELETE, window.session.messages[-2].id)
    studio.settle(0.3)
    studio.show(samples.FILES_CHAT.title)
    window.menus.actions["delete"].trigger()
    studio.settle(0.3)
    window.menus.actions["deleted"].trigger()
    studio.settle(0.4)
    yield Shot("deleted", _dialog(studio))


def preferences(studio: Studio) -> Iterator[Shot]:
    """Every page of the settings, and their search."""
    window = _opened(studio)
    window.presets.add("Poems", ChatSetup("", "Answer in verse."))
    dialog = PreferencesDialog(
        studio.settings,
        window.presets,
        studio.worker,
        samples.workstation(),
        None,
        window,
        ScriptedKnowledge(WORKSTATION),
        window.shortcuts,
    )
    dialog.open()
    for number, page in enumerate(dialog.pages):
        dialog.show_page(page)
        studio.settle(0.3)
        yield Shot(f"settings-{number}", dialog)
        height = page.sizeHint().height()
        if height > dialog.stack.height():
            yield Shot(f"settings-{number}-whole", page)
    dialog.search.field.setText("theme")
    studio.settle(0.3)
    yield Shot("settings-search", dialog)
    dialog.search.field.setText("nothing like it")
    studio.settle(0.3)
    yield Shot("settings-search-nothing", dialog)
    dialog.search.field.clear()
    dialog.show_page(dialog.pages[0])
    yield Shot("settings-smallest", dialog, (dialog.minimumWidth(), dialog.minimumHeight()))


def _opened(studio: Studio) -> MainWindow:
    studio.factory.status = samples.workstation()
    studio.put(*samples.CHATS)
    for measured, day in ((0.081, 12), (0.094, 13)):
        created = f"2026-03-{day}T10:00:00+00:00"
        save_profile(replace(make_profile(gpu=True), created=created, measured_decode=measured))
    assert profiles_dir().exists()
    window = studio.open()
    studio.show(samples.BRANCHES_CHAT.title)
    return window


def _dialog(studio: Studio) -> QDialog:
    """The dialog that is open."""
    found: list[QDialog] = []

    def look() -> bool:
        found[:] = [
            each for each in QApplication.topLevelWidgets() if isinstance(each, QDialog) and each.isVisible()
        ]
        return bool(found)

    studio.wait(look)
    studio.settle(0.3)
    return found[-1]


def _log(parent: MainWindow) -> QDialog:
    lines = LastLines()
    rows = _LOG.splitlines()
    levels = {" INFO ": logging.INFO, " WARNING ": logging.WARNING}
    for row in rows[:3]:
        lines.add([Line(next(level for word, level in levels.items() if word in row), row)])
    lines.add([Line(logging.ERROR, "\n".join(rows[3:]))])
    return LogWindow(lines, lambda: None, parent)


def _progress(parent: MainWindow) -> QDialog:
    dialog = ProgressDialog("Importing chats", CancelToken(), parent)
    dialog.progress.show_progress(Progress("Reading conversations.json", 40, 100))
    return dialog


def _ending(parent: MainWindow) -> QDialog:
    stack = 'Fatal Python error: Segmentation fault\n\nThread 0x1:\n  File "app/main.py", line 1'
    return show_ending(parent, BadEnding("2026-03-12 09:30:00", "0.1.0", stack))


_IMPORTED = Imported(
    chats=(1, 2, 3),
    messages=240,
    skipped=2,
    left_out={LeftOut.PICTURES: 4, LeftOut.TOOLS: 12, LeftOut.REASONING: 1},
    refused=(Refused("Holiday plans", "a message has no text"), Refused("x" * 60, "it is damaged")),
)
_DIALOGS: dict[str, Callable[[MainWindow], QDialog]] = {
    "question": lambda parent: confirm(
        parent, "Delete these 3 chats for good?", "They cannot be brought back.", "Delete", lambda: None
    ),
    "fault": lambda parent: FaultDialog(parent, UnexpectedError("The window", ValueError("any"))),
    "ending": _ending,
    "about": lambda parent: AboutDialog("0.1.0", parent),
    "log": _log,
    "known": lambda parent: ask_about_known(parent, 2, 5, lambda: None, lambda: None),
    "report": lambda parent: show_report(parent, _IMPORTED),
    "progress": _progress,
    "parameters": lambda parent: ParametersDialog(
        parent.presets, parent.session.parameters.setup, None, parent
    ),
    "name": lambda parent: NameDialog("Save as preset", "Mine", lambda _: None, parent),
    "preset": lambda parent: PresetDialog(
        Preset("1", "Mine", "You are terse."), lambda _: None, None, parent
    ),
    "file": lambda parent: AttachmentDialog(samples.NOTES, parent),
    "calibrations": lambda parent: HistoryDialog(parent),
}
SCENES: tuple[Scene, ...] = (dialogs, flows, preferences)
