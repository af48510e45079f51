"""The engine's real answers to the wizard, without torch and without a model on this computer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from app.wizard.catalog import MIXTRAL_ENTRY, STARTER_ENTRY, entry_of
from app.wizard.knowledge import RealKnowledge
from app.wizard.state import Choice, Kind
from engine.errors import CheckpointError
from engine.models import tensors
from engine.models.config import MixtralConfig
from engine.options import LoadOptions
from engine.requirements import Resource
from tests.app.wizard_fakes import LAPTOP
from tests.engine.conftest import SMALL
from tests.engine.generation.tokenizer_folders import byte_level_folder

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


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small model whose weights are all zero: they are not read."""
    config = SMALL | {"vocab_size": 410}
    (tmp_path / "config.json").write_text(json.dumps(config))
    shapes = tensors.expected(MixtralConfig.from_dict(config))
    weights = {name: torch.zeros(shape, dtype=torch.bfloat16) for name, shape in shapes}
    save_file(weights, tmp_path / "model.safetensors")
    byte_level_folder(tmp_path)
    return tmp_path


def test_a_folder_with_a_chat_model_is_offered(model: Path) -> None:
    offer = RealKnowledge().offer(Choice(Kind.FOLDER, folder=model), LAPTOP, OPTIONS)
    assert offer.info.path == model
    assert offer.disk is None


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer is missing"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer.json cannot be read"),
        (lambda folder: (folder / "tokenizer_config.json").unlink(), "cannot chat"),
    ],
)
def test_a_folder_without_a_usable_tokenizer_is_refused(
    model: Path, damage: Callable[[Path], object], what: str
) -> None:
    """Before the model that is loaded makes room for it."""
    damage(model)
    with pytest.raises(CheckpointError) as raised:
        RealKnowledge().offer(Choice(Kind.FOLDER, folder=model), LAPTOP, OPTIONS)
    assert what in raised.value.what
    assert raised.value.action


def test_only_catalogued_models_have_an_entry(tmp_path: Path) -> None:
    assert entry_of(STARTER_ENTRY.choice()) is STARTER_ENTRY
    assert entry_of(MIXTRAL_ENTRY.choice(tmp_path)) is MIXTRAL_ENTRY
    assert entry_of(Choice(Kind.FOLDER, folder=tmp_path)) is None
    assert entry_of(Choice(Kind.HUB, "some/other", tmp_path)) is None


def test_the_wizard_and_the_settings_need_no_torch() -> None:
    code = "import sys, app.wizard.visit, app.preferences.dialog; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
