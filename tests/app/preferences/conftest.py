"""A settings dialog on scripted parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QThreadPool

from app.preferences.dialog import PreferencesDialog
from app.presets.store import PresetStore
from app.settings import SettingsStore, registry
from app.worker import EngineWorker
from engine.params import GenerationParams
from tests.app.fakes import make_status
from tests.app.wizard_fakes import ScriptedKnowledge, make_profile

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


@pytest.fixture
def settings() -> SettingsStore:
    store = SettingsStore(None)
    store.set(registry.MODEL_PATH, "/models/starter")
    return store


@pytest.fixture
def knowledge() -> ScriptedKnowledge:
    return ScriptedKnowledge(found=(make_profile(), ""))


@pytest.fixture
def dialog(
    qtbot: QtBot, settings: SettingsStore, loaded_worker: EngineWorker, knowledge: ScriptedKnowledge
) -> Iterator[PreferencesDialog]:
    dialog = PreferencesDialog(
        settings,
        PresetStore(None, settings),
        loaded_worker,
        make_status(),
        GenerationParams(),
        knowledge=knowledge,
    )
    qtbot.addWidget(dialog)
    with qtbot.waitActive(dialog):
        dialog.show()
    yield dialog
    dialog.accept()
    QThreadPool.globalInstance().waitForDone(5000)
