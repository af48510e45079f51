"""A backup is a consistent copy of a running program's data, complete or absent."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.backup.errors import BackupError
from app.backup.writing import back_up
from app.paths import database_path, settings_path
from app.storage import open_store
from app.storage.schema import MIGRATIONS
from engine.errors import Cancelled, FileError
from engine.progress import CancelToken, Progress, ignore_progress


def test_holds_everything_and_names_it(backup: Path) -> None:
    with zipfile.ZipFile(backup) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("backup.json"))
    assert {"backup.json", "chats.sqlite3", "settings.toml", "presets.json"} < names
    assert sum(name.startswith("profiles/") for name in names) == 2  # in use, and in the history
    assert set(manifest["files"]) == names - {"backup.json"}
    assert (manifest["format"], manifest["version"], manifest["chats"]) == ("fiddler-chat-backup", 1, 1)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_is_as_private_as_the_chats(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.zip"
    back_up(target, ignore_progress, CancelToken())
    assert target.stat().st_mode & 0o777 == database_path().stat().st_mode & 0o777 == 0o600
    target.chmod(0o644)  # as earlier versions left theirs
    back_up(target, ignore_progress, CancelToken())
    assert target.stat().st_mode & 0o777 == 0o600


def test_while_the_chats_are_open_all_that_is_saved_is_in_it(filled: Path, tmp_path: Path) -> None:
    store = open_store(database_path()).store
    chat = store.create_conversation("Paris")
    store.add_message(chat.id, "user", "Only in the log yet")
    assert database_path().with_name("chats.sqlite3-wal").stat().st_size > 0
    target = tmp_path / "b.zip"
    manifest = back_up(target, ignore_progress, CancelToken())
    store.add_message(chat.id, "user", "later")  # nobody was locked out
    store.close()
    assert manifest.chats == 2
    with zipfile.ZipFile(target) as archive:
        archive.extract("chats.sqlite3", tmp_path)
    with closing(sqlite3.connect(tmp_path / "chats.sqlite3")) as copy:
        contents = [row[0] for row in copy.execute("SELECT content FROM message ORDER BY id")]
        assert copy.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert contents == ["When was it founded?", "Only in the log yet"]


def test_tells_how_far_it_is(filled: Path, tmp_path: Path) -> None:
    heard: list[Progress] = []
    back_up(tmp_path / "b.zip", heard.append, CancelToken())
    assert all(0 <= each.done <= each.total for each in heard)
    assert heard[-1].done == heard[-1].total > 0
    assert {each.what for each in heard} == {"Copying the chats", "Writing the backup"}


@pytest.mark.parametrize("after", [0, 1, 2])
def test_cancelled_at_any_place_it_leaves_nothing(filled: Path, tmp_path: Path, after: int) -> None:
    cancel, heard = CancelToken(), []

    def report(progress: Progress) -> None:
        heard.append(progress)
        if len(heard) > after:
            cancel.cancel()

    with pytest.raises(Cancelled):
        back_up(tmp_path / "b.zip", report, cancel)
    assert not (tmp_path / "b.zip").exists()
    assert not list(filled.glob("unfinished-*"))


def test_an_older_backup_of_that_name_stays_when_the_new_one_fails(
    filled: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = backup.read_bytes()
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        back_up(backup, ignore_progress, cancel)
    assert backup.read_bytes() == before


def test_without_anything_it_says_so(data_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(BackupError, match="nothing to back up"):
        back_up(tmp_path / "b.zip", ignore_progress, CancelToken())
    assert not (tmp_path / "b.zip").exists()
    assert not database_path().exists()  # looking made none


def test_from_a_folder_that_became_read_only(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(database_path()).store
    store.add_message(store.create_conversation("Paris").id, "user", "Only in the log yet")
    before = {path.name: path.stat().st_mtime_ns for path in filled.iterdir()}
    (tmp_path / "stick").mkdir()
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != filled)
    manifest = back_up(tmp_path / "stick" / "b.zip", ignore_progress, CancelToken())
    assert manifest.chats == 2
    assert {path.name: path.stat().st_mtime_ns for path in filled.iterdir()} == before
    assert [path.name for path in (tmp_path / "stick").iterdir()] == ["b.zip"]
    store.close()


def test_where_it_cannot_be_written_it_says_so(filled: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError):
        back_up(tmp_path / "file" / "b.zip", ignore_progress, CancelToken())


def test_a_file_that_cannot_be_read_is_named_not_the_target(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def refuse(path: Path, *given: Any, **how: Any) -> Any:
        if path == settings_path():
            raise PermissionError(13, "Permission denied")
        return real(path, *given, **how)

    monkeypatch.setattr(Path, "open", refuse)
    target = tmp_path / "elsewhere" / "b.zip"
    with pytest.raises(FileError, match="The backup could not be made") as caught:
        back_up(target, ignore_progress, CancelToken())
    assert str(filled) in caught.value.why
    assert "elsewhere" not in str(caught.value)
    assert not target.exists()
