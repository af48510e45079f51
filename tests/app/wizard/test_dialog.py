"""The wizard's window with a scripted engine: whole walks; cancelling, failing, resuming at each step."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel

from app.dialogs import MessageDialog
from app.settings import SettingsStore, registry
from app.wizard import visit
from app.wizard.events import Choose
from app.wizard.memory import is_needed
from app.wizard.offers import Offer
from app.wizard.pages.calibrate import CalibratePage
from app.wizard.pages.computer import ComputerPage
from app.wizard.pages.get import GetPage
from app.wizard.pages.plan import PlanPage
from app.wizard.pages.result import ResultPage
from app.wizard.state import Choice, Kind, Measured, Step
from app.wizard.visits import choose_model, recalibrate
from app.worker import EngineWorker
from engine.errors import (
    CalibrationError,
    CheckpointError,
    DownloadError,
    FileError,
    HardwareError,
    ShortageError,
)
from engine.hardware import MemoryInfo
from engine.units import GIB, format_bytes
from tests.app.fakes import ScriptedFactory, make_status
from tests.app.wizard.conftest import Wizard
from tests.app.wizard_fakes import CHOICE, LAPTOP, WORKSTATION, ScriptedKnowledge, make_profile, not_a_model

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

Open = Callable[..., Wizard]


def computer(wizard: Wizard) -> ComputerPage:
    page = wizard.dialog.pages[Step.COMPUTER]
    assert isinstance(page, ComputerPage)
    return page


def plan(wizard: Wizard) -> PlanPage:
    page = wizard.dialog.pages[Step.PLAN]
    assert isinstance(page, PlanPage)
    return page


def get(wizard: Wizard) -> GetPage:
    page = wizard.dialog.pages[Step.GET]
    assert isinstance(page, GetPage)
    return page


def calibrate(wizard: Wizard) -> CalibratePage:
    page = wizard.dialog.pages[Step.CALIBRATE]
    assert isinstance(page, CalibratePage)
    return page


def result(wizard: Wizard) -> ResultPage:
    page = wizard.dialog.pages[Step.RESULT]
    assert isinstance(page, ResultPage)
    return page


def choose_starter(wizard: Wizard) -> None:
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.PLAN)
    wizard.click(plan(wizard).cards[0].radio)
    wizard.wait(wizard.dialog.next.isEnabled)


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


class TestComputer:
    def test_says_what_was_found_and_copies_it(self, open_wizard: Open) -> None:
        wizard = open_wizard()
        wizard.click(computer(wizard).copy)
        text = QGuiApplication.clipboard().text()
        assert LAPTOP.cpu.name in text
        assert LAPTOP.gpu_message in text

    def test_looks_while_the_window_stays_usable(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.detect_gate = threading.Event()
        wizard = open_wizard()
        wizard.wait(computer(wizard).progress.isVisible)
        assert not wizard.dialog.next.isEnabled()
        knowledge.detect_gate.set()
        wizard.wait(wizard.dialog.next.isEnabled)
        assert not computer(wizard).progress.isVisible()

    def test_failure_is_explained_and_repeated(self, open_wizard: Open, knowledge: ScriptedKnowledge) -> None:
        knowledge.detect_error = HardwareError("It cannot be used.", why="Because.", action="Do this.")
        wizard = open_wizard()
        wizard.wait(computer(wizard).problem.isVisible)
        assert computer(wizard).problem.text.what.text() == "It cannot be used."
        assert not wizard.dialog.next.isEnabled()
        knowledge.detect_error = None
        wizard.click(computer(wizard).again)
        wizard.wait(wizard.dialog.next.isEnabled)
        assert not computer(wizard).problem.isVisible()


class TestPlan:
    def at_plan(self, open_wizard: Open) -> Wizard:
        wizard = open_wizard()
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.PLAN)
        return wizard

    def test_every_model_is_judged_before_one_is_chosen(self, open_wizard: Open) -> None:
        wizard = self.at_plan(open_wizard)
        starter, mixtral = plan(wizard).cards
        wizard.wait(lambda: "tokens per second" in mixtral.verdict.text())
        assert starter.verdict.text().startswith("Fits this computer")
        assert mixtral.verdict.text().startswith("Does not fit")
        assert starter.radio.isChecked()
        assert plan(wizard).plan.parentWidget() is starter

    def test_a_click_anywhere_on_the_card_chooses(self, open_wizard: Open) -> None:
        wizard = self.at_plan(open_wizard)
        card = plan(wizard).cards[1]
        wizard.bot.mouseClick(card.description, Qt.MouseButton.LeftButton)
        wizard.wait(card.radio.isChecked)
        wizard.wait(plan(wizard).force.isVisible)
        assert not wizard.dialog.next.isEnabled()

    def test_arrow_keys_choose(self, open_wizard: Open) -> None:
        wizard = self.at_plan(open_wizard)
        wizard.press(Qt.Key.Key_Down)
        wizard.wait(lambda: wizard.state.choice is not None and wizard.state.choice.kind is Kind.HUB)
        wizard.press(Qt.Key.Key_Up)
        wizard.wait(lambda: wizard.state.choice is not None and wizard.state.choice.kind is Kind.STARTER)

    def test_a_shortage_is_itemised_and_done_anyway(self, open_wizard: Open) -> None:
        wizard = self.at_plan(open_wizard)
        wizard.click(plan(wizard).cards[1].radio)
        wizard.wait(plan(wizard).force.isVisible)
        assert not wizard.dialog.next.isEnabled()
        texts = [label.text().replace("\u00a0", " ") for label in plan(wizard).needs.findChildren(QLabel)]
        assert wizard.state.choice is not None
        offer = wizard.controller.offers[wizard.state.choice]
        assert isinstance(offer, Offer)
        [short] = [need for need in offer.needs if not need.fits]
        assert any(text.endswith(f"{format_bytes(short.missing)} missing") for text in texts)
        assert any("All 256 experts 84.0 GiB" in text for text in texts)
        assert any(text.startswith("88.0 GiB needed, 212.0 GiB available") for text in texts)
        assert "16 GiB" in plan(wizard).advice.text()
        wizard.click(plan(wizard).force)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.CALIBRATE)
        wizard.wait(lambda: wizard.state.loaded)
        [(repo_id, folder)] = wizard.factory.downloads
        assert repo_id == "mistralai/Mixtral-8x7B-Instruct-v0.1"
        assert folder.name == "Mixtral-8x7B-Instruct-v0.1"
        assert wizard.factory.forced == [True]
        assert wizard.factory.options[-1].force

    def test_fewer_bits_are_offered_where_memory_is_short_in_bf16_and_used_at_the_load(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.hardware = replace(LAPTOP, memory=MemoryInfo(64 * GIB, 58 * GIB))
        wizard = self.at_plan(open_wizard)
        assert not plan(wizard).other_precision.isVisible()  # the starter fits as it is
        wizard.click(plan(wizard).cards[1].radio)
        wizard.wait(plan(wizard).force.isVisible)
        assert plan(wizard).other_precision.text() == "&Use 8 bits"
        assert "practically the same" in plan(wizard).precision.text()
        wizard.click(plan(wizard).other_precision)
        wizard.wait(wizard.dialog.next.isEnabled)
        assert not plan(wizard).force.isVisible()
        assert not plan(wizard).other_precision.isVisible()
        assert plan(wizard).precision.text().startswith("Experts in 8 bits.")
        assert wizard.settings.get(registry.PRECISION) == "bf16"  # nothing is done yet
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert wizard.factory.options[-1].precision == "int8"
        assert wizard.settings.get(registry.PRECISION) == "int8"

    def test_full_precision_is_offered_back_where_it_fits(self, open_wizard: Open) -> None:
        wizard = open_wizard()
        wizard.settings.set(registry.PRECISION, "int4")
        choose_starter(wizard)
        assert plan(wizard).other_precision.text() == "&Use bf16"
        wizard.click(plan(wizard).other_precision)
        wizard.wait(lambda: not plan(wizard).precision.isVisible())
        wizard.wait(wizard.dialog.next.isEnabled)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert wizard.factory.options[-1].precision == "bf16"

    def test_no_precision_is_offered_where_none_would_help(self, open_wizard: Open) -> None:
        wizard = self.at_plan(open_wizard)
        wizard.click(plan(wizard).cards[1].radio)
        wizard.wait(plan(wizard).force.isVisible)
        assert not plan(wizard).other_precision.isVisible()

    def test_graphics_memory_is_planned_where_there_is_some(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.hardware = WORKSTATION
        wizard = self.at_plan(open_wizard)
        wizard.click(plan(wizard).cards[1].radio)
        wizard.wait(wizard.dialog.next.isEnabled)
        assert re.match(r"[1-9]\d* of 256 experts in graphics memory", plan(wizard).placement.text())
        texts = [label.text() for label in plan(wizard).needs.findChildren(QLabel)]
        assert "Graphics memory" in texts

    def test_a_folder_is_opened_checked_and_used(
        self, open_wizard: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        wizard = self.at_plan(open_wizard)
        bad, good = tmp_path / "holiday photos", tmp_path / "my-mixtral"
        wizard.knowledge.bad_folders[bad] = not_a_model(bad)
        wizard.knowledge.hardware = WORKSTATION
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(bad))
        wizard.click(plan(wizard).open)
        wizard.wait(plan(wizard).problem.isVisible)
        assert str(bad) in plan(wizard).problem.text.why.text()
        assert not wizard.dialog.next.isEnabled()
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(good))
        wizard.click(plan(wizard).open)
        wizard.wait(plan(wizard).force.isVisible)
        assert not plan(wizard).problem.isVisible()
        wizard.click(plan(wizard).force)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.CALIBRATE)
        assert wizard.settings.get(registry.MODEL_PATH) == str(good)

    def test_no_folder_no_choice(self, open_wizard: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        wizard = self.at_plan(open_wizard)
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
        wizard.click(plan(wizard).folder_card.radio)
        assert wizard.state.choice == Choice(Kind.STARTER)
        assert plan(wizard).cards[0].radio.isChecked()
        assert not plan(wizard).folder_card.radio.isChecked()


class TestGet:
    def at_get(self, open_wizard: Open, factory: ScriptedFactory) -> Wizard:
        factory.download_gate = threading.Event()
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.GET)
        return wizard

    def test_progress_is_shown(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        wizard = self.at_get(open_wizard, factory)
        wizard.wait(lambda: get(wizard).progress.what.text() == "Converting the starter model")
        assert get(wizard).progress.bar.value() == pytest.approx(1000 / 3, abs=1)
        assert not wizard.dialog.back.isEnabled()

    def test_cancel_and_continue(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        wizard = self.at_get(open_wizard, factory)
        wizard.click(get(wizard).cancel)
        wizard.wait(get(wizard).retry.isVisible)
        assert get(wizard).note.text() == "Stopped. What is here already is kept."
        assert not wizard.dialog.next.isEnabled()
        assert factory.download_gate is not None
        factory.download_gate.set()
        wizard.press(Qt.Key.Key_Return)  # Continue has the focus
        wizard.wait_step(Step.CALIBRATE)

    def test_failure_is_explained_and_tried_again(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.starter_error = DownloadError("It broke off.", why="No network.", action="Look at the cable.")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(get(wizard).problem.isVisible)
        assert get(wizard).problem.text.action.text() == "Look at the cable."
        assert not get(wizard).problem.do_anyway.isVisible()
        factory.starter_error = None
        wizard.click(get(wizard).retry)
        wizard.wait_step(Step.CALIBRATE)

    def test_closing_stops_and_the_next_visit_continues_here(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        wizard = self.at_get(open_wizard, factory)
        wizard.dialog.close()
        wizard.wait(lambda: not wizard.dialog.isVisible())
        assert wizard.dialog.result() == QDialog.DialogCode.Rejected
        factory.download_gate = None
        again = open_wizard()
        assert again.state.step is Step.GET
        again.click(get(again).retry)
        again.wait_step(Step.CALIBRATE)

    def test_a_hub_model_moves_to_another_folder(
        self, open_wizard: Open, factory: ScriptedFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        factory.download_error = DownloadError("The disk is full.")
        wizard = open_wizard()
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.PLAN)
        wizard.click(plan(wizard).cards[1].radio)
        wizard.wait(plan(wizard).force.isVisible)
        wizard.click(plan(wizard).force)
        wizard.click(wizard.dialog.next)
        wizard.wait(get(wizard).change.isEnabled)
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "big disk"))
        wizard.click(get(wizard).change)
        factory.download_error = None
        wizard.click(get(wizard).retry)
        wizard.wait_step(Step.CALIBRATE)
        expected = tmp_path / "big disk" / "Mixtral-8x7B-Instruct-v0.1"
        assert factory.downloads[-1][1] == expected
        assert wizard.settings.get(registry.WIZARD_FOLDER) == str(expected)


class TestCalibrate:
    def at_calibrate(self, open_wizard: Open) -> Wizard:
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.CALIBRATE)
        return wizard

    def test_probes_appear_one_by_one(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        assert calibrate(wizard).table.item(0, 0).text() == "One expert with the fastest kernels, 4 tokens"
        assert calibrate(wizard).table.item(0, 1).text() == "290 µs"
        factory.calibrate_gate.set()
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == len(factory.probes))

    def test_a_model_that_does_not_fit_is_loaded_anyway(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        factory.load_error = ShortageError("Too little memory.", why="3 GiB missing.")
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(calibrate(wizard).problem.isVisible)
        assert not factory.options[-1].force
        factory.load_error = None
        wizard.click(calibrate(wizard).problem.do_anyway)
        wizard.wait(lambda: wizard.state.measured is Measured.YES)
        assert factory.options[-1].force

    def test_cancel_and_measure_again(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        wizard.click(calibrate(wizard).cancel)
        wizard.wait(calibrate(wizard).retry.isVisible)
        assert not wizard.dialog.next.isEnabled()
        factory.calibrate_gate.set()
        wizard.click(calibrate(wizard).retry)
        wizard.wait(lambda: wizard.state.measured is Measured.YES)
        assert calibrate(wizard).table.rowCount() == len(factory.probes)

    def test_failure_is_explained_and_can_be_skipped(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        factory.calibrate_error = CalibrationError("A time makes no sense.", action="Try again.")
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(calibrate(wizard).problem.isVisible)
        assert calibrate(wizard).skip_hint.isVisible()
        wizard.click(wizard.dialog.skip)
        wizard.wait_step(Step.RESULT)
        assert not result(wizard).figures.isVisible()
        assert "not calibrated" in result(wizard).introduction.text()
        wizard.click(wizard.dialog.next)
        assert wizard.settings.get(registry.WIZARD_COMPLETED)

    def test_skip_while_it_runs(self, open_wizard: Open, factory: ScriptedFactory) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        wizard.click(wizard.dialog.skip)
        wizard.wait_step(Step.RESULT)

    def test_closing_midway_comes_back_here_and_waits(
        self, open_wizard: Open, factory: ScriptedFactory
    ) -> None:
        factory.calibrate_gate = threading.Event()
        wizard = self.at_calibrate(open_wizard)
        wizard.wait(lambda: calibrate(wizard).table.rowCount() == 1)
        wizard.press(Qt.Key.Key_Escape)
        wizard.wait(lambda: not wizard.dialog.isVisible())
        loads = len(factory.options)
        again = open_wizard()
        again.wait_step(Step.CALIBRATE)
        again.wait(calibrate(again).retry.isVisible)
        assert len(factory.options) == loads  # nothing long starts unasked
        factory.calibrate_gate.set()
        again.click(calibrate(again).retry)
        again.wait(lambda: again.state.measured is Measured.YES)

    def test_what_changed_is_said(
        self, open_wizard: Open, knowledge: ScriptedKnowledge, factory: ScriptedFactory
    ) -> None:
        factory.calibrate_gate = threading.Event()  # afterwards there is nothing to say
        knowledge.found = (None, "The hardware has changed. Calibrate again.")
        wizard = self.at_calibrate(open_wizard)
        assert calibrate(wizard).note.text() == "The hardware has changed. Calibrate again."


class TestResult:
    def test_a_valid_profile_leads_straight_here(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.found = (make_profile(), "")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait_step(Step.RESULT)
        wizard.wait(wizard.dialog.next.isEnabled)
        assert result(wizard).predicted.value.text() == "50.5"
        assert result(wizard).measured.value.text() == "48.8"
        assert "3%" in result(wizard).measured.meaning.text()
        assert not result(wizard).doubt.isVisible()
        assert not result(wizard).kernels.isVisible()  # a calibration from before there was a choice

    def test_the_chosen_kernels_are_told(self, open_wizard: Open, knowledge: ScriptedKnowledge) -> None:
        knowledge.found = (replace(make_profile(), kernels=CHOICE), "")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert result(wizard).kernels.isVisible()
        assert result(wizard).kernels.text() == CHOICE.text()

    def test_a_measurement_far_from_its_prediction_is_doubted(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.found = (replace(make_profile(), measured_decode=0.2), "")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert result(wizard).doubt.isVisible()

    def test_without_a_gpu_nothing_is_shown_as_one(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.found = (make_profile(), "")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert (
            result(wizard)
            .placement.text()
            .startswith("No graphics card is used: all 48 experts run on the CPU")
        )
        assert not result(wizard).vram.isVisible()
        assert "all on the CPU" in result(wizard).map.accessibleName()

    def test_with_a_gpu_the_map_and_its_memory(
        self, open_wizard: Open, knowledge: ScriptedKnowledge, factory: ScriptedFactory
    ) -> None:
        resident = np.zeros((6, 8), dtype=np.bool_)
        resident[:2] = True
        knowledge.found = (make_profile(gpu=True), "")
        wizard = open_wizard()
        factory.status = make_status(
            residency=resident, has_gpu=True, device="RTX", vram_used=5 * 2**30, vram_budget=6 * 2**30
        )
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert result(wizard).placement.text().startswith("16 of 48 experts are in the memory")
        assert "5.0 GiB used of 6.0 GiB" in result(wizard).vram_text.text()
        assert result(wizard).vram.isVisible()

    def test_loading_that_fails_is_repeated(
        self, open_wizard: Open, knowledge: ScriptedKnowledge, factory: ScriptedFactory
    ) -> None:
        knowledge.found = (make_profile(), "")
        factory.load_error = CheckpointError("A file is damaged.", action="Download it again.")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(result(wizard).problem.isVisible)
        assert not wizard.dialog.next.isEnabled()
        factory.load_error = None
        wizard.click(result(wizard).retry)
        wizard.wait(wizard.dialog.next.isEnabled)

    def test_closing_here_comes_back_here(self, open_wizard: Open, knowledge: ScriptedKnowledge) -> None:
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.measured is Measured.YES)
        wizard.click(wizard.dialog.next)
        wizard.click(wizard.dialog.close_button)
        assert not wizard.dialog.isVisible()
        assert is_needed(wizard.settings)
        knowledge.found = (make_profile(), "")
        again = open_wizard()
        again.wait_step(Step.RESULT)
        again.wait(again.dialog.next.isEnabled)


def test_a_model_that_is_gone_is_explained_at_the_plan(open_wizard: Open, settings: SettingsStore) -> None:
    settings.update({"wizard.completed": True, "wizard.model": "starter", "model.path": "/gone/away"})
    assert is_needed(settings)
    wizard = open_wizard()
    wizard.wait(plan(wizard).cards[0].radio.isChecked)
    wizard.wait(wizard.dialog.next.isEnabled)
    assert plan(wizard).problem.text.what.text() == "The model is not where it was."


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
