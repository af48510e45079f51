"""Walks through every window: names, roles, Tab's way. A list of faults is what a failing test shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QWidget
from pytestqt.qtbot import QtBot

from app.attachments.form import Attachment
from app.attachments.viewer import AttachmentDialog
from app.chat.deleted import DeletedDialog
from app.chat.details import DetailsDialog
from app.desktop.last_run import BadEnding
from app.dialogs import ask_anyway, confirm, show_error
from app.errors import UnexpectedError
from app.fault_dialog import FaultDialog, show_ending
from app.importing.dialogs import ask_about_known, show_report
from app.importing.words import Imported
from app.logs.lines import LastLines
from app.logs.window import LogWindow
from app.menus import AboutDialog
from app.preferences.dialog import PreferencesDialog
from app.preferences.history_dialog import HistoryDialog
from app.presets.dialog import ParametersDialog, PresetDialog
from app.presets.name_dialog import NameDialog
from app.presets.preset import Preset
from app.presets.store import PresetStore
from app.settings import SettingsStore
from app.storage.figures import params_to_json, stats_to_json
from app.storage.rows import MessageRow, MessageState
from app.widgets.task import ProgressDialog
from app.window import MainWindow
from app.worker import EngineWorker
from engine.errors import EngineError, ShortageError
from engine.params import GenerationParams
from engine.progress import CancelToken
from tests.app.chat.conftest import settings, storage, window
from tests.app.fakes import ScriptedFactory, make_status
from tests.app.figures import stats_after
from tests.app.walking import look_through, stray_windows, tab_through
from tests.app.wizard_fakes import ScriptedKnowledge

__all__ = ["settings", "storage", "stray_windows", "window"]
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "raise")


@pytest.fixture
def knowledge() -> ScriptedKnowledge:
    return ScriptedKnowledge()


def talk(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    factory.script = [
        "Text with a [link](https://example.org).\n\n```python\nx = 1\n```\n\n| a |\n|---|\n| b |\n"
    ]
    for question in ("Hello", "Again"):
        window.session.send(question)
        qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
        qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    window.session.regenerate()
    qtbot.waitUntil(lambda: window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=5000)
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() >= 1, timeout=5000)


def test_the_main_window(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    assert look_through(qtbot, window) == []
    talk(qtbot, window, factory)
    window.show_bad_ending(BadEnding("", "", ""))
    assert look_through(qtbot, window) == []
    window.menus.actions["edit_last"].trigger()
    assert look_through(qtbot, window) == []
    window.program.toggle_sidebar()
    window.program.toggle_panel()
    assert look_through(qtbot, window) == []


def test_the_search_the_archive_and_what_can_be_taken_back(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    talk(qtbot, window, factory)
    window.sidebar.search.setText("link")
    qtbot.waitUntil(lambda: window.sidebar.model.rowCount() >= 1, timeout=5000)
    assert look_through(qtbot, window) == []
    window.sidebar.search.clear()
    window.menus.actions["archive"].trigger()
    qtbot.waitUntil(window.sidebar.undo.isVisible, timeout=5000)
    window.menus.actions["archived"].trigger()
    assert look_through(qtbot, window) == []


def test_the_overlay_of_shortcuts(qtbot: QtBot, window: MainWindow) -> None:
    window.menus.actions["shortcuts"].trigger()
    assert look_through(qtbot, window.overlay) == []


def test_every_page_of_the_settings(
    qtbot: QtBot,
    window: MainWindow,
    settings: SettingsStore,
    worker: EngineWorker,
    knowledge: ScriptedKnowledge,
) -> None:
    dialog = PreferencesDialog(
        settings,
        PresetStore(None, settings),
        worker,
        make_status(),
        None,
        window,
        knowledge,
        shortcuts=window.shortcuts,
    )
    dialog.show()
    found = {}
    for page in dialog.pages:
        dialog.show_page(page)
        qtbot.waitUntil(page.isVisible, timeout=5000)
        found[page.name] = look_through(qtbot, dialog)
    dialog.search.field.setText("theme")
    found["search"] = look_through(qtbot, dialog)
    assert {name: faults for name, faults in found.items() if faults} == {}
    dialog.accept()


ANSWER = MessageRow(
    2,
    1,
    "assistant",
    "Paris.",
    MessageState.COMPLETE,
    datetime(2026, 1, 2, tzinfo=UTC),
    model="Starter model",
    params=params_to_json(GenerationParams()),
    stats=stats_to_json(stats_after(3)),
)
ERROR = EngineError("It does not fit.", why="3 GB are missing.", action="Close programs.")
Make = Callable[[QWidget, SettingsStore], QDialog]
DIALOGS: dict[str, Make] = {
    "error": lambda parent, _: show_error(parent, ERROR, retry=lambda: None),
    "shortage": lambda parent, _: ask_anyway(parent, ShortageError("No room."), lambda: None),
    "question": lambda parent, _: confirm(parent, "Delete?", "It is gone then.", "Delete", lambda: None),
    "fault": lambda parent, _: FaultDialog(parent, UnexpectedError("The window", ValueError())),
    "ending": lambda parent, _: show_ending(parent, BadEnding("", "", "")),
    "about": lambda parent, _: AboutDialog("0.1.0", parent),
    "log": lambda parent, _: LogWindow(LastLines(), lambda: None, parent),
    "known": lambda parent, _: ask_about_known(parent, 1, 2, lambda: None, lambda: None),
    "report": lambda parent, _: show_report(parent, Imported(skipped=1)),
    "progress": lambda parent, _: ProgressDialog("Importing", CancelToken(), parent),
    "parameters": lambda parent, settings: _parameters(parent, settings),
    "name": lambda parent, _: NameDialog("Save as preset", "Mine", lambda _: None, parent),
    "preset": lambda parent, _: PresetDialog(Preset("1", "Mine"), lambda _: None, None, parent),
    "details": lambda parent, _: DetailsDialog(ANSWER, 2, can_answer=True, parent=parent),
    "file": lambda parent, _: AttachmentDialog(Attachment("notes.txt", "Words\n"), parent),
    "deleted": lambda parent, _: DeletedDialog(parent),
    "calibrations": lambda parent, _: HistoryDialog(parent),
}


def _parameters(parent: QWidget, settings: SettingsStore) -> QDialog:
    assert isinstance(parent, MainWindow)
    return ParametersDialog(PresetStore(None, settings), parent.session.parameters.setup, None, parent)


def test_every_dialog(qtbot: QtBot, window: MainWindow, settings: SettingsStore) -> None:
    found, kinds = {}, set()
    for name, make in DIALOGS.items():
        dialog = make(window, settings)
        kinds |= {kind.__name__ for kind in type(dialog).__mro__}
        dialog.show()
        found[name] = look_through(qtbot, dialog)
        dialog.done(0)
    assert {name: faults for name, faults in found.items() if faults} == {}
    missing = dialogs_of_the_program() - kinds - WALKED_ELSEWHERE
    assert missing == set(), "a dialog that nobody looks through: add it to DIALOGS"


# In a test of its own, here or beside the wizard.
WALKED_ELSEWHERE = {"PreferencesDialog", "ExportDialog", "WizardDialog"}


def dialogs_of_the_program() -> set[str]:
    """The names of all classes of dialogs in the source."""
    return {
        name
        for path in (Path(__file__).parents[2] / "app").rglob("*.py")
        for name in re.findall(r"^class (\w+)\(.*Dialog\):", path.read_text("utf-8"), flags=re.MULTILINE)
    }


def test_the_export(qtbot: QtBot, window: MainWindow, factory: ScriptedFactory) -> None:
    talk(qtbot, window, factory)
    window.menus.actions["export"].trigger()
    dialog = next(child for child in window.findChildren(QDialog) if child.isVisible())
    assert look_through(qtbot, dialog) == []
    dialog.reject()


def test_tab_goes_from_left_to_right_and_also_back(
    qtbot: QtBot, window: MainWindow, factory: ScriptedFactory
) -> None:
    talk(qtbot, window, factory)
    window.activateWindow()
    window.sidebar.new_button.setFocus()
    forward = tab_through(window)
    parts = [window.sidebar, window.page, window.panel]
    order = [next(n for n, part in enumerate(parts) if part.isAncestorOf(widget)) for widget in forward]
    assert order == sorted(order)
    backward = tab_through(window, Qt.Key.Key_Backtab)
    assert set(forward) == set(backward)
