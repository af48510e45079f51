from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.paths import database_path
from app.preferences.dialog import PreferencesDialog
from app.settings import SettingsStore, registry
from app.setup_flow import SetupFlow
from app.storage.thread import StorageThread
from app.window import MainWindow
from app.wizard.dialog import WizardDialog
from app.worker import EngineWorker

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "raise")


@pytest.fixture
def settings() -> SettingsStore:
    return SettingsStore(None)


@pytest.fixture
def window(qtbot: QtBot, worker: EngineWorker, settings: SettingsStore) -> Iterator[MainWindow]:
    storage = StorageThread(database_path())
    made = MainWindow(storage, worker, settings)
    qtbot.addWidget(made)
    made.show()
    yield made
    storage.close()


def test_a_first_start_begins_with_the_wizard_and_one_dialog_is_enough(
    qtbot: QtBot, window: MainWindow, worker: EngineWorker, settings: SettingsStore
) -> None:
    flow = SetupFlow(window, worker, settings)
    window.begin()
    first = flow.dialog
    assert isinstance(first, WizardDialog)
    window.settings_requested.emit()
    assert flow.dialog is first
    first.reject()
    qtbot.waitUntil(lambda: flow.dialog is None, timeout=10_000)
    assert window.page.strip.choose.isVisible()  # the way back into the wizard


def test_the_settings_open_and_close(
    qtbot: QtBot, window: MainWindow, worker: EngineWorker, settings: SettingsStore, tmp_path: Path
) -> None:
    settings.set(registry.WIZARD_COMPLETED, True)
    settings.set(registry.MODEL_PATH, str(tmp_path))
    flow = SetupFlow(window, worker, settings)
    window.begin()
    qtbot.waitUntil(lambda: window.model.status is not None and worker.idle, timeout=5000)
    window.menus.actions["settings"].trigger()
    assert isinstance(flow.dialog, PreferencesDialog)
    flow.dialog.accept()
    qtbot.waitUntil(lambda: flow.dialog is None, timeout=5000)
    window.menus.actions["model"].trigger()
    assert isinstance(flow.dialog, WizardDialog)
    flow.dialog.reject()
    qtbot.waitUntil(lambda: flow.dialog is None, timeout=10_000)
    assert window.model.status is not None  # looking at other models does not close this one
