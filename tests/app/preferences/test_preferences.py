"""The settings dialog: every setting has an editor that is bound both ways; the model page and its offers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QPushButton,
    QSpinBox,
)

from app.dialogs import MessageDialog
from app.preferences.dialog import PreferencesDialog
from app.presets.store import PresetStore
from app.settings import OPTIONS, SettingsStore, registry
from app.widgets.problem import ProblemText
from app.wizard.state import Measured, Step
from app.worker import EngineWorker
from engine.errors import FileError
from engine.options import POLICIES, LoadOptions
from engine.params import GenerationParams
from tests.app.fakes import ScriptedFactory, make_status
from tests.app.wizard_fakes import ScriptedKnowledge, make_probes, make_profile

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

VISIBLE = [option for option in OPTIONS if option.visible]


def editor(dialog: PreferencesDialog, key: str) -> Any:
    page = next(page for page in dialog.pages if key in page.editors)
    dialog.show_page(page)
    return page.editors[key]


def complaint(dialog: PreferencesDialog, key: str) -> str:
    page = next(page for page in dialog.pages if key in page.editors)
    return page.complaints[key].text()


def shown(widget: Any) -> Any:
    """What an editor shows, as the setting's value."""
    if isinstance(widget, QCheckBox):
        return widget.isChecked()
    if isinstance(widget, QComboBox):
        return widget.currentData()
    if isinstance(widget, QSpinBox | QDoubleSpinBox):
        return widget.value()
    raise AssertionError(f"no editor of a setting is a {type(widget).__name__}")


def another_value(option: Any, widget: Any) -> Any:
    if isinstance(widget, QComboBox):
        return widget.itemData(widget.count() - 1)
    if isinstance(option.default, bool):
        return not option.default
    if isinstance(option.default, int):
        return min(int(option.maximum), max(int(option.minimum), 20))
    return 0.5


@pytest.mark.parametrize("option", VISIBLE, ids=lambda option: option.key)
def test_every_setting_has_an_editor_that_follows_it(
    dialog: PreferencesDialog, settings: SettingsStore, option: Any
) -> None:
    widget = editor(dialog, option.key)
    assert shown(widget) == option.default
    value = another_value(option, widget)
    settings.set(option, value)
    assert shown(widget) == value
    assert widget.accessibleName() == option.label


@pytest.mark.parametrize("option", VISIBLE, ids=lambda option: option.key)
def test_every_editor_changes_its_setting(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, option: Any
) -> None:
    widget = editor(dialog, option.key)
    value = another_value(option, widget)
    if isinstance(widget, QCheckBox):
        widget.setFocus()
        qtbot.keyClick(widget, Qt.Key.Key_Space)
    elif isinstance(widget, QComboBox):
        widget.setFocus()
        qtbot.keyClick(widget, Qt.Key.Key_End)
    else:
        widget.setFocus()
        widget.selectAll()
        qtbot.keyClicks(widget, str(value))
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    qtbot.waitUntil(lambda: settings.get(option) == value)


def test_the_wheel_scrolls_the_page_and_not_the_value(
    dialog: PreferencesDialog, settings: SettingsStore
) -> None:
    box = editor(dialog, "engine.threads")
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(box.mapToGlobal(QPoint(5, 5))),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    dialog.list.setFocus()
    QApplication.sendEvent(box, event)
    assert settings.get(registry.THREADS) == 0


def test_pages_are_reached_with_the_keyboard(qtbot: QtBot, dialog: PreferencesDialog) -> None:
    assert QApplication.focusWidget() is dialog.list
    for page in dialog.pages[1:]:
        qtbot.keyClick(dialog.list, Qt.Key.Key_Down)
        assert page.isVisible()
    qtbot.keyClick(dialog.list, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


@pytest.mark.qt_log_ignore("propagateSizeHints")  # the offscreen platform's remark on dialogs that wrap text
def test_what_cannot_be_saved_is_said(
    qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise FileError("The settings could not be saved.", why="The disk is full.")

    monkeypatch.setattr(settings, "update", full)
    editor(dialog, "panel.visible").click()
    [message] = dialog.findChildren(MessageDialog)
    [text] = message.findChildren(ProblemText)
    assert (text.what.text(), text.why.text()) == ("The settings could not be saved.", "The disk is full.")
    message.close()


class TestModelPage:
    def test_shows_the_model_and_its_calibration(self, qtbot: QtBot, dialog: PreferencesDialog) -> None:
        page = dialog.model
        assert page.model_name.text() == make_status().model_name
        assert page.model_path.text() == "/models/starter"
        qtbot.waitUntil(lambda: page.calibration.state.text().startswith("Measured on"))
        assert "2026" in page.calibration.state.text()
        assert "measured 48.8" in page.calibration.details.text()
        assert not page.calibration.warning.isVisible()

    def test_says_that_the_hardware_has_changed(
        self, qtbot: QtBot, dialog: PreferencesDialog, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.found = (None, "The hardware has changed (graphics card).")
        dialog.model.calibration.look(Path("/models/starter"))
        qtbot.waitUntil(lambda: dialog.model.calibration.warning.isVisible())
        assert dialog.model.calibration.warning.text() == "The hardware has changed (graphics card)."

    def test_a_change_that_needs_it_offers_to_load_again(
        self,
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

    def test_taking_the_change_back_takes_the_offer_back(
        self, dialog: PreferencesDialog, settings: SettingsStore
    ) -> None:
        settings.set(registry.POLICY, "stream")
        assert dialog.model.reload_notice.isVisible()
        settings.set(registry.POLICY, "makespan")
        assert not dialog.model.reload_notice.isVisible()

    def test_every_policy_has_its_consequence(
        self, dialog: PreferencesDialog, settings: SettingsStore
    ) -> None:
        texts = set()
        for policy in POLICIES:
            settings.set(registry.POLICY, policy)
            texts.add(dialog.model.helps["engine.policy"].text())
        assert len(texts) == len(POLICIES)
        assert all("without a graphics card" in text for text in texts)

    def test_every_precision_has_its_consequence_and_asks_for_loading_again(
        self, dialog: PreferencesDialog, settings: SettingsStore
    ) -> None:
        texts = set()
        for precision in ("int4", "int8", "bf16"):
            settings.set(registry.PRECISION, precision)
            texts.add(dialog.model.helps["engine.precision"].text())
            assert dialog.model.reload_notice.isVisible() == (precision != "bf16")
        assert len(texts) == 3

    def test_forbidding_rounded_activations_has_its_consequence(
        self, dialog: PreferencesDialog, settings: SettingsStore
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
        self, qtbot: QtBot, dialog: PreferencesDialog, loaded_worker: EngineWorker, factory: ScriptedFactory
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
        self, qtbot: QtBot, dialog: PreferencesDialog, knowledge: ScriptedKnowledge, factory: ScriptedFactory
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
        self, qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore, factory: ScriptedFactory
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

    def test_chooses_another_model_through_the_wizard(self, qtbot: QtBot, dialog: PreferencesDialog) -> None:
        page = dialog.model
        qtbot.mouseClick(page.choose, Qt.MouseButton.LeftButton)
        wizard = page.wizard
        assert wizard is not None
        qtbot.waitUntil(lambda: wizard.controller.state.hardware is not None)
        assert wizard.controller.state.step is Step.PLAN
        wizard.reject()
        qtbot.waitUntil(lambda: page.wizard is None)

    def test_without_a_model_nothing_can_be_measured(
        self, qtbot: QtBot, worker: EngineWorker, knowledge: ScriptedKnowledge
    ) -> None:
        dialog = PreferencesDialog(
            SettingsStore(None), PresetStore(None, SettingsStore(None)), worker, knowledge=knowledge
        )
        qtbot.addWidget(dialog)
        assert dialog.model.model_name.text() == "No model has been chosen yet."
        assert not dialog.model.calibration.run.isEnabled()
        assert dialog.model.choose.isEnabled()
        dialog.accept()


class TestDataPage:
    def test_opens_the_data_folder_and_the_log(
        self, dialog: PreferencesDialog, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[QUrl] = []
        monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
        dialog.show_page(dialog.data)
        for button in (dialog.data.folder, dialog.data.log):
            assert isinstance(button, QPushButton)
            button.click()
        assert [Path(url.toLocalFile()) for url in opened] == [data_dir, data_dir / "logs"]
        assert data_dir.is_dir()

    @pytest.mark.qt_log_ignore("propagateSizeHints")
    def test_restores_the_defaults_after_asking(
        self, qtbot: QtBot, dialog: PreferencesDialog, settings: SettingsStore
    ) -> None:
        settings.set(registry.THREADS, 3)
        dialog.show_page(dialog.data)
        dialog.data.defaults.click()
        [question] = dialog.findChildren(MessageDialog)
        assert settings.get(registry.THREADS) == 3
        question.accept()
        assert settings.get(registry.THREADS) == 0
        assert settings.get(registry.MODEL_PATH) == "/models/starter"  # not a setting that the user chooses
        assert editor(dialog, "engine.threads").value() == 0


def test_a_closed_dialog_listens_no_more(dialog: PreferencesDialog, settings: SettingsStore) -> None:
    dialog.accept()
    assert settings._listeners == []


def test_load_options_that_were_forced_are_not_a_change(
    qtbot: QtBot, settings: SettingsStore, worker: EngineWorker, knowledge: ScriptedKnowledge
) -> None:
    with qtbot.waitSignal(worker.loaded):
        worker.load(Path("/models/starter"), LoadOptions(force=True))
    dialog = PreferencesDialog(
        settings, PresetStore(None, settings), worker, make_status(), knowledge=knowledge
    )
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.model.reload_notice.isVisible()
    dialog.accept()
