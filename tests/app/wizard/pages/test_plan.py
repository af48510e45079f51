"""Models to choose from, judged before anything is loaded."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel

from app.settings import registry
from app.wizard.offers import Offer
from app.wizard.state import Choice, Kind, Step
from engine.hardware import MemoryInfo
from engine.units import GIB, format_bytes
from tests.app.wizard.access import (
    Open,
    choose_starter,
    plan,
)
from tests.app.wizard.conftest import Wizard
from tests.app.wizard_fakes import LAPTOP, WORKSTATION, ScriptedKnowledge, not_a_model


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
        wizard.tab_to(plan(wizard).other_precision)  # without a mouse, too
        wizard.press(Qt.Key.Key_Space)
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
        assert "work on a layer's other experts at the same time" in plan(wizard).placement.text()
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
        assert str(bad) in plan(wizard).problem.text.why.text
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
