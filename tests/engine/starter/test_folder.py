"""A folder that appears complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import FileError
from engine.starter.folder import new_folder


def make(target: Path, text: str) -> None:
    with new_folder(target) as work:
        (work / "file").write_text(text)


def test_a_folder_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for text in ("old", "new"):
        make(tmp_path / "model", text)
        assert (tmp_path / "model" / "file").read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_where_the_new_one_cannot_get_the_name_the_old_one_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows a virus scanner that reads the new files is enough."""
    make(tmp_path / "model", "old")
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if (path / "file").read_text() == "new":
            raise PermissionError(13, "in use")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(FileError, match="model"):
        make(tmp_path / "model", "new")
    assert (tmp_path / "model" / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
