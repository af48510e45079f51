"""The model page: what is loaded, its calibration, and loading it again when a setting asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import Qt

from app.preferences.dialog import PreferencesDialog
from app.presets.store import PresetStore
from app.settings import SettingsStore, load_options, registry
from app.wizard.state import Measured, Step
from app.worker import EngineWorker
from engine.options import POLICIES, LoadOptions
from engine.params import GenerationParams
from tests.app.fakes import ScriptedFactory, make_status
from tests.app.wizard_fakes import ScriptedKnowledge, make_probes, make_profile

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


def test_shows_the_model_and_its_calibration(qtbot: QtBot, dialog: PreferencesDialog) -> None:
    page = dialog.model
    assert page.model_name.text() == make_status().model_name
    assert page.model_path.text() == "/models/starter"
    qtbot.waitUntil(lambda: page.calibration.state.text().startswith("Measured on"))
    assert "2026" in page.calibration.state.text()
    assert "measured 48.8" in page.calibration.details.text()
    assert not page.calibration.warning.isVisible()


def test_says_that_the_hardware_has_changed(
    qtbot: QtBot, dialog: PreferencesDialog, knowledge: ScriptedKnowledge
) -> None:
    knowledge.found = (None, "The hardware has changed (graphics card).")
    dialog.model.calibration.look(Path("/models/starter"))
    qtbot.waitUntil(lambda: dialog.model.calibration.warning.isVisible())
    assert dialog.model.calibration.warning.text() == "The hardware has changed (graphics card)."


def test_a_change_that_needs_it_offers_to_load_again(
    qtbot: QtBot,
    dialog: PreferencesDialog,
    settings: SettingsStore,
    factory: ScriptedFactory,
    loaded_worker: EngineWorker,
) -> None:
    assert not dialog.model.reload_notice.isVisible()
    settings.set(registry.SEND_ON_ENTER, False)
    assert not dialog.model.reload_notice.isVisible()
    settings.set(registry.THREADS, 3)
    assert dialog.model.reload_notice.isVisible()
    with qtbot.waitSignal(loaded_worker.loaded):
        dialog.model.reload.click()
    assert factory.options[-1].threads == 3
    assert not dialog.model.reload_notice.isVisible()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        (registry.VRAM_BUDGET, 2.5),
        (registry.RAM_RESERVE, 1.5),
        (registry.CONTEXT_LENGTH, 2048),
        (registry.THREADS, 2),
        (registry.POLICY, "cpu"),
        (registry.PRECISION, "int8"),
    ],
    ids=lambda value: getattr(value, "key", None),
)
def test_every_limit_reaches_the_engine_when_the_model_is_loaded_again(
    qtbot: QtBot,
    dialog: PreferencesDialog,
    settings: SettingsStore,
    factory: ScriptedFactory,
    loaded_worker: EngineWorker,
    option: Any,
    value: Any,
) -> None:
    settings.set(option, value)
    assert dialog.model.reload_notice.isVisible()
    with qtbot.waitSignal(loaded_worker.loaded):
        dialog.model.reload.click()
    assert factory.options[-1] == load_options(settings) != LoadOptions()
    assert not dialog.model.reload_notice.isVisible()


def test_taking_the_change_back_takes_the_offer_back(
    dialog: PreferencesDialog, settings: SettingsStore
) -> None:
    settings.set(registry.POLICY, "stream")
    assert dialog.model.reload_notice.isVisible()
    settings.set(registry.POLICY, "makespan")
    assert not dialog.model.reload_notice.isVisible()


def test_every_policy_has_its_consequence(dialog: PreferencesDialog, settings: SettingsStore) -> None:
    texts = set()
    for policy in POLICIES:
        settings.set(registry.POLICY, policy)
        texts.add(dialog.model.helps["engine.policy"].text())
    assert len(texts) == len(POLICIES)
    assert all("without a graphics card" in text for text in texts)


def test_every_precision_has_its_consequence_and_asks_for_loading_again(
    dialog: PreferencesDialog, settings: SettingsStore
) -> None:
    texts = set()
    for precision in ("int4", "int8", "bf16"):
        settings.set(registry.PRECISION, precision)
        texts.add(dialog.model.helps["engine.precision"].text())
        assert dialog.model.reload_notice.isVisible() == (precision != "bf16")
    assert len(texts) == 3


def test_forbidding_rounded_activations_has_its_consequence(
    dialog: PreferencesDialog, settings: SettingsStore
) -> None:
    help = dialog.model.helps["engine.exact_activations"]
    settings.set(registry.EXACT_ACTIVATIONS, True)
    assert "experts in bf16" in help.text()
    assert not dialog.model.reload_notice.isVisible()  # it makes no difference
    settings.set(registry.EXACT_ACTIVATIONS, False)
    settings.set(registry.PRECISION, "int4")
    assert "where calibration finds it faster" in help.text()
    settings.set(registry.EXACT_ACTIVATIONS, True)
    assert "more precise" in help.text()
    assert dialog.model.reload_notice.isVisible()


def test_nothing_interrupts_a_busy_model(
    qtbot: QtBot, dialog: PreferencesDialog, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.delay = 0.2
    loaded_worker.generate(1, [], GenerationParams())
    page = dialog.model
    for button in (page.choose, page.reload, page.calibration.run):
        assert not button.isEnabled()
    assert page.busy.isVisible()
    qtbot.waitUntil(lambda: loaded_worker.idle)
    assert page.choose.isEnabled()
    assert not page.busy.isVisible()


def test_recalibrates_through_the_wizard(
    qtbot: QtBot, dialog: PreferencesDialog, knowledge: ScriptedKnowledge, factory: ScriptedFactory
) -> None:
    factory.probes = list(make_probes())  # type: ignore[arg-type]
    factory.profile = make_profile()
    page = dialog.model
    qtbot.mouseClick(page.calibration.run, Qt.MouseButton.LeftButton)
    wizard = page.wizard
    assert wizard is not None
    qtbot.waitUntil(lambda: wizard.controller.state.measured is Measured.YES)
    assert wizard.controller.state.steps == (Step.CALIBRATE, Step.RESULT)
    plans = len(knowledge.plans)
    wizard.next.click()
    wizard.next.click()
    qtbot.waitUntil(lambda: page.wizard is None)
    assert len(knowledge.plans) == plans
    assert len(factory.engines) == 1


def test_what_is_calibrated_is_the_model_as_the_settings_say(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, factory: ScriptedFactory
) -> None:
    factory.probes, factory.profile = list(make_probes()), make_profile()  # type: ignore[arg-type]
    page = dialog.model
    settings.set(registry.PRECISION, "int4")
    qtbot.mouseClick(page.calibration.run, Qt.MouseButton.LeftButton)
    wizard = page.wizard
    assert wizard is not None
    qtbot.waitUntil(lambda: wizard.controller.state.measured is Measured.YES)
    assert [options.precision for options in factory.options] == ["bf16", "int4"]
    assert factory.engines[0].closed
    wizard.next.click()
    wizard.next.click()
    qtbot.waitUntil(lambda: page.wizard is None)
    assert not page.reload_notice.isVisible()


def test_chooses_another_model_through_the_wizard(qtbot: QtBot, dialog: PreferencesDialog) -> None:
    page = dialog.model
    qtbot.mouseClick(page.choose, Qt.MouseButton.LeftButton)
    wizard = page.wizard
    assert wizard is not None
    qtbot.waitUntil(lambda: wizard.controller.state.hardware is not None)
    assert wizard.controller.state.step is Step.PLAN
    wizard.reject()
    qtbot.waitUntil(lambda: page.wizard is None)


def test_without_a_model_nothing_can_be_measured(
    qtbot: QtBot, worker: EngineWorker, knowledge: ScriptedKnowledge
) -> None:
    dialog = PreferencesDialog(
        SettingsStore(None), PresetStore(None, SettingsStore(None)), worker, knowledge=knowledge
    )
    qtbot.addWidget(dialog)
    assert dialog.model.model_name.text() == "No model has been chosen yet."
    assert not dialog.model.calibration.run.isEnabled()
    assert dialog.model.choose.isEnabled()
    dialog.accept()
