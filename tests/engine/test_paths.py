import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine import paths

ROOT = Path(paths.__file__).resolve().parent.parent


def test_the_data_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    assert paths.data_dir() == tmp_path
    for folder in (paths.models_dir(), paths.profiles_dir(), paths.cache_dir()):
        assert folder.parent == tmp_path


def test_a_relative_or_home_choice_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("FIDDLER_DATA_DIR", "~/chats")
    assert paths.data_dir() == tmp_path / "chats"
    monkeypatch.setenv("FIDDLER_DATA_DIR", "here")
    assert paths.data_dir().is_absolute()


def test_an_empty_choice_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIDDLER_DATA_DIR", raising=False)
    default = paths.data_dir()
    monkeypatch.setenv("FIDDLER_DATA_DIR", "")
    assert paths.data_dir() == default
    assert default.name == "fiddler-chat"
    assert default.is_absolute()


def test_asking_for_a_folder_does_not_create_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path / "data"))
    for ask in (paths.data_dir, paths.models_dir, paths.profiles_dir, paths.cache_dir):
        assert not ask().exists()
    assert paths.ensure_dir(paths.models_dir()).is_dir()
    assert paths.ensure_dir(paths.models_dir()).is_dir()  # a second time is fine


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(paths.PathError) as caught:
        paths.ensure_dir(tmp_path / "file" / "data")
    assert "cannot be created" in caught.value.what
    assert caught.value.why
    assert "FIDDLER_DATA_DIR" in caught.value.action


def test_the_checkout_has_its_assets_at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "_MEIPASS", raising=False)
    assert paths.assets_dir() == ROOT / "assets"


def test_a_frozen_program_has_them_in_its_bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "assets" / "icons").mkdir(parents=True)
    (tmp_path / "assets" / "icons" / "app.svg").write_text("<svg/>")
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert paths.asset("icons/app.svg") == tmp_path / "assets" / "icons" / "app.svg"
    assert paths.find_asset("icons/none.svg") is None
    with pytest.raises(paths.PathError, match=r"none\.svg"):
        paths.asset("icons/none.svg")


def test_an_installation_has_them_inside_the_app_package(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "app" / "assets" / "icons").mkdir(parents=True)
    (site / "assets").mkdir()  # another distribution's folder is not ours
    (site / "engine").mkdir()
    for name in ("__init__.py", "errors.py", "paths.py"):
        shutil.copy(ROOT / "engine" / name, site / "engine" / name)
    code = "from engine import paths; print(paths.asset('icons'))"
    # Without site.py: the checkout's editable installation would put its own `engine` first.
    libraries = [str(site), *(entry for entry in sys.path if entry and Path(entry).resolve() != ROOT)]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(libraries)},
        cwd=site,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()) == site / "app" / "assets" / "icons"
