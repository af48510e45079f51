"""The wizard's window with a scripted engine: whole walks; cancelling, failing, resuming at each step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt, QThreadPool
from PySide6.QtWidgets import QDialog

from app.dialogs import MessageDialog
from app.settings import SettingsStore, registry
from app.wizard import visit
from app.wizard.events import Choose
from app.wizard.memory import is_needed
from app.wizard.state import Choice, Kind, Measured, Step
from app.wizard.visits import choose_model, recalibrate
from app.worker import EngineWorker
from engine.errors import (
    FileError,
    ShortageError,
)
from engine.options import LoadOptions
from tests.app.fakes import ScriptedFactory
from tests.app.wizard.access import (
    Open,
    calibrate,
    choose_starter,
    computer,
    plan,
)
from tests.app.wizard_fakes import WORKSTATION, ScriptedKnowledge, not_a_model

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


def test_the_whole_walk_with_the_mouse(open_wizard: Open) -> None:
    wizard = open_wizard()
    assert is_needed(wizard.settings)
    choose_starter(wizard)
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.CALIBRATE)
    wizard.wait(lambda: wizard.state.measured is Measured.YES)
    assert calibrate(wizard).table.rowCount() == len(wizard.factory.probes)
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.RESULT)
    assert wizard.dialog.next.text() == "&Start chatting"
    wizard.click(wizard.dialog.next)
    wizard.wait(lambda: wizard.dialog.result() == QDialog.DialogCode.Accepted)
    assert wizard.settings.get(registry.MODEL_PATH) == str(wizard.factory.model_folder)
    assert wizard.settings.get(registry.WIZARD_COMPLETED)
    assert not is_needed(wizard.settings)


def test_the_whole_walk_with_the_keyboard(open_wizard: Open) -> None:
    wizard = open_wizard()
    wizard.wait(wizard.dialog.next.isEnabled)
    wizard.press(Qt.Key.Key_Return)
    wizard.wait_step(Step.PLAN)
    wizard.wait(wizard.dialog.next.isEnabled)
    wizard.press(Qt.Key.Key_Return)
    wizard.wait(lambda: wizard.state.measured is Measured.YES)
    wizard.press(Qt.Key.Key_Return)
    wizard.wait_step(Step.RESULT)
    wizard.wait(wizard.dialog.next.isEnabled)
    wizard.press(Qt.Key.Key_Return)
    wizard.wait(lambda: wizard.dialog.result() == QDialog.DialogCode.Accepted)


def test_the_focus_waits_at_close_only_until_the_computer_is_known(
    open_wizard: Open, knowledge: ScriptedKnowledge
) -> None:
    """Space must not close what has just become ready."""
    knowledge.detect_gate = threading.Event()
    wizard = open_wizard()
    assert wizard.dialog.close_button.hasFocus()
    knowledge.detect_gate.set()
    wizard.wait(wizard.dialog.next.isEnabled)
    assert wizard.dialog.next.hasFocus()


def test_everything_can_be_reached_with_tab(open_wizard: Open) -> None:
    wizard = open_wizard()
    wizard.wait(wizard.dialog.next.isEnabled)
    for button in (computer(wizard).copy, computer(wizard).again, wizard.dialog.close_button):
        wizard.tab_to(button)
    choose_starter(wizard)
    for target in (plan(wizard).open, wizard.dialog.back, wizard.dialog.next):
        wizard.tab_to(target)
    wizard.tab_to(wizard.dialog.back)
    wizard.press(Qt.Key.Key_Space)
    wizard.wait_step(Step.COMPUTER)


def test_a_model_that_is_gone_is_explained_at_the_plan(open_wizard: Open, settings: SettingsStore) -> None:
    settings.update({"wizard.completed": True, "wizard.model": "starter", "model.path": "/gone/away"})
    assert is_needed(settings)
    wizard = open_wizard()
    wizard.wait(plan(wizard).cards[0].radio.isChecked)
    wizard.wait(wizard.dialog.next.isEnabled)
    assert plan(wizard).problem.text.what.text == "The model is not where it was."


def test_recalibrating_shows_two_steps_and_ends_with_done(
    open_wizard: Open, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    wizard = open_wizard(recalibrate(factory.model_folder, factory.status))
    wizard.wait(lambda: wizard.state.measured is Measured.YES)
    assert len(factory.engines) == 1  # the loaded model was used
    assert not wizard.dialog.back.isVisible()
    assert not wizard.dialog.skip.isVisible()
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.RESULT)
    assert wizard.dialog.next.text() == "&Done"
    wizard.click(wizard.dialog.next)
    assert wizard.dialog.result() == QDialog.DialogCode.Accepted


def test_choosing_another_model_closes_the_loaded_one(
    open_wizard: Open, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    wizard = open_wizard(choose_model(None, factory.status))
    wizard.wait_step(Step.PLAN)
    wizard.click(plan(wizard).cards[0].radio)
    wizard.click(wizard.dialog.next)
    wizard.wait(lambda: wizard.state.measured is Measured.YES)
    assert factory.engines[0].closed
    assert len(factory.engines) == 2


def test_giving_up_on_another_model_brings_the_loaded_one_back(
    loaded_worker: EngineWorker,
    factory: ScriptedFactory,
    settings: SettingsStore,
    knowledge: ScriptedKnowledge,
    qtbot: QtBot,
) -> None:
    factory.download_gate = threading.Event()
    settings.update({"wizard.completed": True, "wizard.model": "starter", "model.path": "/models/starter"})
    dialog = visit.choose_model(loaded_worker, settings, factory.status, knowledge=knowledge)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitUntil(dialog.next.isEnabled)
    dialog.next.click()
    qtbot.waitUntil(lambda: factory.engines[0].closed)
    dialog.reject()
    with qtbot.waitSignal(loaded_worker.loaded):
        pass
    assert factory.engine.path == Path("/models/starter")
    assert dialog.result() == QDialog.DialogCode.Rejected


def test_a_model_that_cannot_be_loaded_does_not_replace_the_one_in_use(
    loaded_worker: EngineWorker,
    factory: ScriptedFactory,
    settings: SettingsStore,
    knowledge: ScriptedKnowledge,
    qtbot: QtBot,
    tmp_path: Path,
) -> None:
    settings.update({"wizard.completed": True, "wizard.model": "starter", "model.path": "/models/starter"})
    knowledge.hardware = WORKSTATION
    dialog = visit.choose_model(loaded_worker, settings, factory.status, knowledge=knowledge)
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.controller.send(Choose(Choice(Kind.FOLDER, folder=tmp_path)))
    qtbot.waitUntil(dialog.next.isEnabled)
    factory.load_error = not_a_model(tmp_path)
    dialog.next.click()
    qtbot.waitUntil(lambda: dialog.controller.state.problem is not None)
    assert settings.get(registry.MODEL_PATH) == str(tmp_path)
    factory.load_error = None
    with qtbot.waitSignal(loaded_worker.loaded):
        dialog.reject()
    assert factory.engine.path == Path("/models/starter")
    assert settings.get(registry.MODEL_PATH) == "/models/starter"


def test_a_precision_that_cannot_be_loaded_does_not_replace_the_one_in_use(
    loaded_worker: EngineWorker, factory: ScriptedFactory, settings: SettingsStore, qtbot: QtBot
) -> None:
    model = str(factory.model_folder)
    settings.update({"wizard.completed": True, "wizard.model": "starter", "model.path": model})
    settings.set(registry.PRECISION, "int4")
    dialog = visit.choose_model(
        loaded_worker, settings, factory.status, knowledge=ScriptedKnowledge(hardware=WORKSTATION)
    )
    qtbot.addWidget(dialog)
    dialog.show()
    dialog.controller.send(Choose(Choice(Kind.STARTER, precision="bf16")))
    qtbot.waitUntil(dialog.next.isEnabled)
    factory.load_error = ShortageError("There is not enough memory.")
    dialog.next.click()
    qtbot.waitUntil(lambda: dialog.controller.state.problem is not None)
    assert settings.get(registry.PRECISION) == "bf16"
    factory.load_error = None
    with qtbot.waitSignal(loaded_worker.loaded):
        dialog.reject()
    assert settings.get(registry.PRECISION) == "int4"
    assert factory.options[-1].precision == "int4"


@pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark on dialogs that wrap text
def test_settings_that_cannot_be_saved_are_reported_and_do_not_stop_the_wizard(
    open_wizard: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FileError("The settings could not be saved.", why="The disk is full.")

    wizard = open_wizard()
    choose_starter(wizard)
    monkeypatch.setattr(wizard.settings, "update", full)
    wizard.click(wizard.dialog.next)
    wizard.wait(lambda: bool(wizard.dialog.findChildren(MessageDialog)))
    wizard.wait_step(Step.CALIBRATE)
    for message in wizard.dialog.findChildren(MessageDialog):
        message.close()


@pytest.fixture
def many_threads() -> Iterator[None]:
    """As on a computer with more cores than there are plans to work out."""
    pool = QThreadPool.globalInstance()
    before = pool.maxThreadCount()
    pool.setMaxThreadCount(8)
    yield
    pool.setMaxThreadCount(before)


def test_plans_for_a_computer_that_has_changed_meanwhile_are_not_shown(
    many_threads: None, open_wizard: Open
) -> None:
    wizard = open_wizard()
    wizard.wait(wizard.dialog.next.isEnabled)
    gate = wizard.knowledge.offer_gate = threading.Event()
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.PLAN)
    wizard.click(wizard.dialog.back)
    wizard.wait_step(Step.COMPUTER)
    wizard.knowledge.hardware = WORKSTATION
    wizard.click(computer(wizard).again)
    wizard.wait(lambda: wizard.state.hardware is WORKSTATION)
    gate.set()
    QThreadPool.globalInstance().waitForDone(5000)
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.PLAN)
    wizard.wait(wizard.dialog.next.isEnabled)
    for choice, offer in wizard.dialog.controller.offers.items():
        assert offer == wizard.knowledge.offer(choice, WORKSTATION, LoadOptions())
