"""The folders that can be seen in the pictures of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from installer.screenshots import data_folder


def test_the_data_lie_in_a_home_that_is_gone_afterwards(tmp_path: Path) -> None:
    home = tmp_path / "user"
    with data_folder(home) as data:
        assert data.parent == home
        (data / "settings.toml").write_text("x")
    assert not home.exists()


def test_the_home_of_somebody_is_never_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "user"
    home.mkdir()
    (home / "diary.txt").write_text("mine")
    with data_folder(home) as data:
        assert data.is_dir()
        assert home not in data.parents
    assert not data.exists()
    assert [path.name for path in home.iterdir()] == ["diary.txt"]
    assert str(home) in capsys.readouterr().out


def test_pictures_are_taken_where_no_home_can_be_made(tmp_path: Path) -> None:
    with data_folder(tmp_path / "missing" / "user") as data:
        assert data.is_dir()
    assert not data.exists()
