"""The engine's real answers to the wizard, without torch and without a model on this computer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.wizard.catalog import MIXTRAL_ENTRY, STARTER_ENTRY, entry_of
from app.wizard.knowledge import RealKnowledge
from app.wizard.state import Choice, Kind
from engine.errors import CheckpointError
from engine.options import LoadOptions
from engine.requirements import Resource
from tests.app.wizard_fakes import LAPTOP

OPTIONS = LoadOptions()


def test_the_starter_before_it_is_made() -> None:
    offer = RealKnowledge().offer(STARTER_ENTRY.choice(), LAPTOP, OPTIONS)
    assert offer.info.is_starter
    assert offer.disk is not None
    assert 0.7e9 < offer.disk.total < 1.5e9
    assert [need.resource for need in offer.needs] == [Resource.RAM, Resource.DISK]


def test_mixtral_counts_what_is_already_downloaded(tmp_path: Path) -> None:
    folder = tmp_path / "Mixtral"
    choice = MIXTRAL_ENTRY.choice(folder)
    before = RealKnowledge().offer(choice, LAPTOP, OPTIONS)
    folder.mkdir()
    with (folder / "model-00001.safetensors.part").open("wb") as file:
        file.truncate(10**9)
    after = RealKnowledge().offer(choice, LAPTOP, OPTIONS)
    assert before.disk is not None
    assert after.disk is not None
    assert before.disk.total - after.disk.total == 10**9
    assert before.short  # 16 GiB of memory do not hold it


def test_a_folder_without_a_model_is_refused_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as raised:
        RealKnowledge().offer(Choice(Kind.FOLDER, folder=tmp_path), LAPTOP, OPTIONS)
    assert str(tmp_path) in str(raised.value)
    assert raised.value.action


def test_only_catalogued_models_have_an_entry(tmp_path: Path) -> None:
    assert entry_of(STARTER_ENTRY.choice()) is STARTER_ENTRY
    assert entry_of(MIXTRAL_ENTRY.choice(tmp_path)) is MIXTRAL_ENTRY
    assert entry_of(Choice(Kind.FOLDER, folder=tmp_path)) is None
    assert entry_of(Choice(Kind.HUB, "some/other", tmp_path)) is None


def test_the_wizard_and_the_settings_need_no_torch() -> None:
    code = "import sys, app.wizard.visit, app.preferences.dialog; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
