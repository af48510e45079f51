"""What was measured and where the experts are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.wizard.memory import is_needed
from app.wizard.state import Measured, Step
from engine.errors import (
    CheckpointError,
)
from tests.app.fakes import ScriptedFactory, make_status
from tests.app.wizard.access import (
    Open,
    choose_starter,
    result,
)
from tests.app.wizard_fakes import CHOICE, ScriptedKnowledge, make_profile


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
        assert not result(wizard).remarks.isVisible()  # a calibration from before there was a choice

    def test_what_both_do_at_the_same_time_is_told(
        self, open_wizard: Open, knowledge: ScriptedKnowledge
    ) -> None:
        knowledge.found = (make_profile(gpu=True), "")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert "While experts are copied the CPU takes 1.22 times as long" in result(wizard).remarks.text()

    def test_the_chosen_kernels_are_told(self, open_wizard: Open, knowledge: ScriptedKnowledge) -> None:
        knowledge.found = (replace(make_profile(), kernels=CHOICE), "")
        wizard = open_wizard()
        choose_starter(wizard)
        wizard.click(wizard.dialog.next)
        wizard.wait(lambda: wizard.state.loaded)
        assert result(wizard).remarks.isVisible()
        assert result(wizard).remarks.text() == CHOICE.text()

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
