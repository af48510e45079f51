"""A wizard in front of a scripted engine on a made-up computer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt, QThreadPool
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication

from app.settings import SettingsStore, load_options
from app.wizard.controller import WizardController
from app.wizard.dialog import WizardDialog
from app.wizard.memory import SettingsMemory
from app.wizard.state import FlowState, Step
from app.wizard.visits import resume
from app.worker import EngineWorker
from tests.app.fakes import ScriptedFactory, make_status
from tests.app.wizard_fakes import ScriptedKnowledge, make_probes, make_profile

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


@dataclass
class Wizard:
    """What a test needs: the dialog, what it talks to, and hands to use it with."""

    dialog: WizardDialog
    controller: WizardController
    factory: ScriptedFactory
    knowledge: ScriptedKnowledge
    settings: SettingsStore
    bot: QtBot

    @property
    def state(self) -> FlowState:
        return self.controller.state

    def wait(self, condition: Callable[[], bool]) -> None:
        self.bot.waitUntil(condition, timeout=5000)

    def wait_step(self, step: Step) -> None:
        self.wait(lambda: self.state.step is step)

    def click(self, button: QAbstractButton) -> None:
        self.wait(lambda: button.isVisible() and button.isEnabled())
        self.bot.mouseClick(button, Qt.MouseButton.LeftButton)

    def press(self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        """Press a key where the keyboard's focus is, as a user without a mouse does."""
        target = QApplication.focusWidget() or self.dialog
        QTest.keyClick(target, key, modifiers)

    def tab_to(self, button: QAbstractButton) -> None:
        """Reach a button with the Tab key alone."""
        for _ in range(40):
            if QApplication.focusWidget() is button:
                return
            self.press(Qt.Key.Key_Tab)
        raise AssertionError(f"Tab never reaches “{button.text()}”")


@pytest.fixture
def settings() -> SettingsStore:
    return SettingsStore(None)


@pytest.fixture
def knowledge() -> ScriptedKnowledge:
    return ScriptedKnowledge()


@pytest.fixture
def open_wizard(
    qtbot: QtBot,
    worker: EngineWorker,
    factory: ScriptedFactory,
    knowledge: ScriptedKnowledge,
    settings: SettingsStore,
    tmp_path: Path,
) -> Iterator[Callable[..., Wizard]]:
    """Open the wizard: at what the settings remember, or in the given state."""
    factory.model_folder = tmp_path / "models" / "starter"
    factory.model_folder.mkdir(parents=True)
    factory.probes = list(make_probes())  # type: ignore[arg-type]
    factory.profile = make_profile()
    factory.status = make_status()

    def opened(state: FlowState | None = None) -> Wizard:
        memory = SettingsMemory(settings)
        controller = WizardController(
            worker,
            knowledge,
            memory,
            lambda: load_options(settings),
            tmp_path / "models",
            state or resume(memory.saved()),
        )
        dialog = WizardDialog(controller)
        qtbot.addWidget(dialog)
        with qtbot.waitActive(dialog):
            dialog.show()
        return Wizard(dialog, controller, factory, knowledge, settings, qtbot)

    yield opened
    worker.cancel()
    gates = (factory.load_gate, factory.calibrate_gate, factory.download_gate)
    for gate in (*gates, knowledge.detect_gate, knowledge.offer_gate):
        if gate is not None:
            gate.set()
    QThreadPool.globalInstance().waitForDone(5000)
