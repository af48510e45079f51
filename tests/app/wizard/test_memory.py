"""What the wizard keeps in the settings, and what it makes of what it finds there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from app.settings import SettingsStore, registry
from app.wizard.memory import SettingsMemory, choice_from, choice_text, is_needed
from app.wizard.state import Choice, Kind

NAMES = st.text("abcdefgh-._0123456789", min_size=1)
FOLDERS = st.sampled_from([Path("/models/a b"), Path("/größe/模型")])
CHOICES = st.one_of(
    st.just(Choice(Kind.STARTER)),
    st.builds(lambda name, folder: Choice(Kind.HUB, f"owner/{name}", folder), NAMES, FOLDERS),
    st.builds(lambda folder: Choice(Kind.FOLDER, folder=folder), FOLDERS),
)


@given(CHOICES)
def test_a_choice_is_found_again(choice: Choice) -> None:
    settings = SettingsStore(None)
    SettingsMemory(settings).remember_choice(choice)
    assert SettingsMemory(settings).saved().choice == choice


@given(st.text(), st.text())
def test_nonsense_is_no_choice_and_no_error(text: str, folder: str) -> None:
    choice = choice_from(text, folder)
    assert choice is None or choice_text(choice) == text


@pytest.mark.parametrize("text", ["", "hub:", "hub:a/b", "folder"])
def test_incomplete_choices_are_none(text: str) -> None:
    assert choice_from(text, "") is None


def test_the_wizard_is_needed_until_it_is_finished_with_a_model(tmp_path: Path) -> None:
    settings = SettingsStore(None)
    memory = SettingsMemory(settings)
    assert is_needed(settings)
    memory.remember_model(tmp_path)
    assert is_needed(settings)
    memory.remember_completed()
    assert not is_needed(settings)


def test_a_model_that_is_gone_makes_it_needed_again(tmp_path: Path) -> None:
    settings = SettingsStore(None)
    memory = SettingsMemory(settings)
    memory.remember_model(tmp_path / "gone")
    memory.remember_completed()
    assert is_needed(settings)
    problem = memory.saved().problem
    assert problem is not None
    assert str(tmp_path / "gone") in problem.why
    assert problem.action


def test_a_new_choice_forgets_an_unfinished_visits_model_but_not_the_one_in_use(tmp_path: Path) -> None:
    settings = SettingsStore(None)
    memory = SettingsMemory(settings)
    memory.remember_model(tmp_path)
    memory.remember_choice(Choice(Kind.STARTER))
    assert settings.get(registry.MODEL_PATH) == ""
    memory.remember_model(tmp_path)
    memory.remember_completed()
    memory.remember_choice(Choice(Kind.HUB, "a/b", tmp_path / "b"))
    assert settings.get(registry.MODEL_PATH) == str(tmp_path)


def test_a_chosen_precision_becomes_the_setting_with_the_complete_model(tmp_path: Path) -> None:
    settings = SettingsStore(None)
    memory = SettingsMemory(settings)
    choice = Choice(Kind.HUB, "a/b", tmp_path, "int4")
    memory.remember_choice(choice)
    assert memory.saved().choice == choice  # a download that was interrupted goes on with it
    assert settings.get(registry.PRECISION) == "bf16"
    memory.remember_model(tmp_path, "int4")
    assert settings.get(registry.PRECISION) == "int4"
    assert memory.saved().choice == replace(choice, precision="")  # from now on the setting's business


def test_a_model_without_a_chosen_precision_leaves_the_setting_alone(tmp_path: Path) -> None:
    settings = SettingsStore(None)
    settings.set(registry.PRECISION, "int8")
    SettingsMemory(settings).remember_model(tmp_path)
    assert settings.get(registry.PRECISION) == "int8"


def test_a_precision_that_does_not_exist_is_none() -> None:
    settings = SettingsStore(None)
    memory = SettingsMemory(settings)
    memory.remember_choice(Choice(Kind.STARTER, precision="int3"))
    assert memory.saved().choice == Choice(Kind.STARTER)


def test_a_path_that_no_system_can_look_up_is_a_model_that_is_gone() -> None:
    settings = SettingsStore(None)
    memory = SettingsMemory(settings)
    memory.remember_model(Path("/" + "x" * 300))  # as of a folder that one may not enter
    memory.remember_completed()
    assert is_needed(settings)
    assert memory.saved().problem is not None
