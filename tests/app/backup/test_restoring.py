"""A backup is checked, unpacked beside the present data, and exchanged for it without losing either."""

from __future__ import annotations

import json
import os
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from app.backup import swapping
from app.backup.contents import Manifest, is_allowed
from app.backup.errors import BackupError
from app.backup.staging import discard, stage
from app.backup.swapping import ask_for_swap, swap_if_asked
from app.paths import database_path, presets_path, settings_path
from app.storage import open_store
from app.storage.schema import MIGRATIONS
from engine.errors import Cancelled
from engine.profile_history import history
from engine.progress import CancelToken, Progress, ignore_progress
from tests.app.backup.conftest import chats, write_chat

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RELEASED = sorted((Path(__file__).parent.parent / "storage" / "released").glob("v*.sql"))
Change = Callable[[dict[str, bytes | None]], Path]


def unpack(backup: Path, data: Path) -> Manifest:
    return stage(backup, data, ignore_progress, CancelToken())


def restore(backup: Path, data: Path) -> Path:
    """Restore as the program does; the folder with what was there before."""
    aside = ask_for_swap(data, unpack(backup, data).created, NOW)
    notice = swap_if_asked(data)
    assert notice is not None
    assert str(aside) in notice.action
    return aside


def with_manifest(changed: Change, backup: Path, **values: object) -> Path:
    with zipfile.ZipFile(backup) as archive:
        manifest = json.loads(archive.read("backup.json"))
    return changed({"backup.json": json.dumps({**manifest, **values}).encode()})


def test_what_was_backed_up_is_there_again_and_what_was_there_is_kept(filled: Path, backup: Path) -> None:
    write_chat("Later", "Not in the backup")
    settings_path().write_text('[appearance]\ntheme = "light"\n', "utf-8")
    aside = restore(backup, filled)
    assert chats(database_path()) == [("Rome", "When was it founded?")]
    assert "dark" in settings_path().read_text("utf-8")
    assert [title for title, _ in chats(aside / "chats.sqlite3")] == ["Later", "Rome"]
    assert "light" in (aside / "settings.toml").read_text("utf-8")
    assert not (filled / "restore").exists()
    assert swap_if_asked(filled) is None  # once
    opened = open_store(database_path())
    assert [line.conversation.title for line in opened.store.conversations("founded")] == ["Rome"]
    assert opened.store.conversations("backup") == []
    opened.store.close()


def test_onto_a_fresh_computer(filled: Path, backup: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    restore(backup, fresh)
    assert chats(fresh / "chats.sqlite3") == [("Rome", "When was it founded?")]
    assert (fresh / "presets.json").read_text("utf-8") == "{}"
    assert len(history(fresh / "profiles").kept) == 1
    assert (fresh / "chats.sqlite3").stat().st_mode & 0o077 == 0  # as private as chats are


def test_a_log_that_belongs_to_the_present_chats_goes_with_them(filled: Path, backup: Path) -> None:
    log = database_path().with_name("chats.sqlite3-wal")
    log.write_bytes(b"left by a crash")
    aside = restore(backup, filled)
    assert not log.exists()
    assert (aside / "chats.sqlite3-wal").read_bytes() == b"left by a crash"


@pytest.mark.parametrize("script", RELEASED, ids=lambda script: script.stem)
def test_chats_of_every_released_version_are_brought_to_this_one(
    filled: Path, backup: Path, changed: Change, tmp_path: Path, script: Path
) -> None:
    old = tmp_path / "old.sqlite3"
    with closing(sqlite3.connect(old)) as db:
        db.executescript(script.read_text("utf-8"))
    content = old.read_bytes()
    with zipfile.ZipFile(backup) as archive:
        manifest = json.loads(archive.read("backup.json"))
    manifest["files"]["chats.sqlite3"] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
    older = changed({"chats.sqlite3": content, "backup.json": json.dumps(manifest).encode()})
    restore(older, filled)
    with closing(sqlite3.connect(database_path())) as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        assert db.execute("SELECT count(*) FROM message").fetchone()[0] > 0


@pytest.mark.parametrize("step", range(8))
def test_cut_off_at_any_renaming_the_next_start_goes_on(
    filled: Path, backup: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    write_chat("Later", "Not in the backup")
    aside = ask_for_swap(filled, unpack(backup, filled).created, NOW)
    real, calls = os.replace, []

    def failing(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) > step:
            raise OSError(5, "cut off")
        real(source, target)

    with monkeypatch.context() as patch, suppress(BackupError):
        patch.setattr(swapping.os, "replace", failing)
        swap_if_asked(filled)
    swap_if_asked(filled)
    assert chats(database_path()) == [("Rome", "When was it founded?")]
    assert [title for title, _ in chats(aside / "chats.sqlite3")] == ["Later", "Rome"]
    assert presets_path().exists()
    assert not (filled / "restore.json").exists()


class TestRefused:
    """Nothing of the present data is touched, and nothing stays behind."""

    @pytest.fixture(autouse=True)
    def untouched(self, filled: Path, backup: Path) -> object:
        before = {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()}
        yield
        assert {path: path.read_bytes() for path in filled.rglob("*") if path.is_file()} == before

    @pytest.mark.parametrize("content", [b"", b"no zip at all", b"\x89PNG\r\n\x1a\n" + bytes(100)])
    def test_a_foreign_file(self, filled: Path, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "foreign").write_bytes(content)
        with pytest.raises(BackupError, match="not a backup of Fiddler Chat"):
            unpack(tmp_path / "foreign", filled)

    def test_a_zip_of_something_else(self, filled: Path, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            archive.writestr("chats.sqlite3", "hello")
        with pytest.raises(BackupError, match="not a backup of Fiddler Chat"):
            unpack(tmp_path / "x.zip", filled)

    @pytest.mark.parametrize("name", ["settings.toml", "chats.sqlite3"])
    def test_a_changed_part(self, filled: Path, changed: Change, name: str) -> None:
        with pytest.raises(BackupError, match="damaged"):
            unpack(changed({name: b"other"}), filled)

    def test_a_missing_part(self, filled: Path, changed: Change) -> None:
        with pytest.raises(BackupError, match="damaged"):
            unpack(changed({"presets.json": None}), filled)

    def test_a_newer_format(self, filled: Path, backup: Path, changed: Change) -> None:
        with pytest.raises(BackupError, match=r"newer version of this program \(99\.0\)"):
            unpack(with_manifest(changed, backup, version=2, program="99.0"), filled)

    @pytest.mark.parametrize("name", ["../evil", "/etc/evil", "profiles/../../evil.json", "models/x.json"])
    def test_a_name_that_leads_elsewhere(
        self, filled: Path, backup: Path, changed: Change, tmp_path: Path, name: str
    ) -> None:
        with pytest.raises(BackupError, match="not a backup"):
            unpack(with_manifest(changed, backup, files={name: {"bytes": 0, "sha256": ""}}), filled)
        assert not (tmp_path / "evil").exists()

    def test_one_that_is_cut_off(self, filled: Path, backup: Path, tmp_path: Path) -> None:
        (tmp_path / "half.zip").write_bytes(backup.read_bytes()[: backup.stat().st_size // 2])
        with pytest.raises(BackupError, match="damaged"):
            unpack(tmp_path / "half.zip", filled)

    @pytest.mark.parametrize("sql", ["PRAGMA user_version = 99", "PRAGMA application_id = 7"])
    def test_chats_of_a_newer_version_or_of_another_program(
        self, filled: Path, backup: Path, changed: Change, tmp_path: Path, sql: str
    ) -> None:
        with zipfile.ZipFile(backup) as archive:
            archive.extract("chats.sqlite3", tmp_path)
            manifest = json.loads(archive.read("backup.json"))
        with closing(sqlite3.connect(tmp_path / "chats.sqlite3")) as db:
            db.execute(sql)
        content = (tmp_path / "chats.sqlite3").read_bytes()
        manifest["files"]["chats.sqlite3"] = {"bytes": len(content), "sha256": sha256(content).hexdigest()}
        other = changed({"chats.sqlite3": content, "backup.json": json.dumps(manifest).encode()})
        with pytest.raises(BackupError, match="cannot be restored"):
            unpack(other, filled)

    def test_figures_that_are_none(self, filled: Path, backup: Path, changed: Change) -> None:
        with pytest.raises(BackupError, match="not a backup"):
            unpack(with_manifest(changed, backup, chats=float("inf")), filled)

    def test_settings_too_large_to_be_read(
        self, filled: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.backup.contents.LARGEST_TEXT", 10)
        with pytest.raises(BackupError, match="not a backup"):
            unpack(backup, filled)

    def test_a_part_that_is_packed_in_another_way_and_damaged(
        self, filled: Path, backup: Path, tmp_path: Path
    ) -> None:
        other = tmp_path / "lzma.zip"
        with zipfile.ZipFile(backup) as source, zipfile.ZipFile(other, "w", zipfile.ZIP_LZMA) as copy:
            for name in source.namelist():
                copy.writestr(name, source.read(name))
            start = copy.getinfo("chats.sqlite3").header_offset
        content = bytearray(other.read_bytes())
        content[start + 80 : start + 200] = b"\xff" * 120
        other.write_bytes(content)
        with pytest.raises(BackupError, match="damaged"):
            unpack(other, filled)

    def test_one_that_is_gone_or_cannot_be_read(
        self, filled: Path, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with pytest.raises(BackupError, match=r"gone\.zip.*No such file"):
            unpack(tmp_path / "gone.zip", filled)

        def fail(*_: object) -> bytes:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(zipfile.ZipExtFile, "read", fail)
        with pytest.raises(BackupError, match=r"mine\.zip.*Input/output error") as caught:
            unpack(backup, filled)
        assert str(filled) not in str(caught.value)  # nothing is wrong there

    def test_cancelled(self, filled: Path, backup: Path) -> None:
        cancel = CancelToken()

        def report(progress: Progress) -> None:
            cancel.cancel()

        with pytest.raises(Cancelled):
            stage(backup, filled, report, cancel)

    def test_thought_better_of(self, filled: Path, backup: Path) -> None:
        unpack(backup, filled)
        discard(filled)
        assert swap_if_asked(filled) is None


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)
@given(st.integers(0, 10**6), st.integers(0, 255))
def test_any_changed_byte_is_noticed_or_harmless(
    filled: Path, backup: Path, tmp_path: Path, place: int, value: int
) -> None:
    content = bytearray(backup.read_bytes())
    content[place % len(content)] = value
    target = tmp_path / "flipped.zip"
    target.write_bytes(content)
    try:
        unpack(target, filled)
    except BackupError:
        assert not (filled / "restore").exists()
        return
    with closing(sqlite3.connect(filled / "restore" / "chats.sqlite3")) as db:
        assert db.execute("SELECT content FROM message").fetchall() == [("When was it founded?",)]
    discard(filled)


@given(st.text())
def test_no_name_that_is_allowed_leads_out_of_the_folder(name: str) -> None:
    if is_allowed(name):
        assert Path("/data", name).resolve().is_relative_to("/data")


def test_what_a_crash_left_of_a_backup_or_before_the_answer_is_removed_at_the_start(
    filled: Path, backup: Path
) -> None:
    unpack(backup, filled)
    (filled / "unfinished-backup-x1").mkdir()
    (filled / "unfinished-backup-x1" / "chats.sqlite3").write_bytes(b"copy")
    assert swap_if_asked(filled) is None
    assert not list(filled.glob("unfinished-*"))
    assert not (filled / "restore").exists()
    assert chats(database_path()) == [("Rome", "When was it founded?")]


def test_an_order_without_anything_unpacked_is_forgotten(filled: Path) -> None:
    ask_for_swap(filled, "2026", NOW)
    assert swap_if_asked(filled) is None
    assert not (filled / "restore.json").exists()
    (filled / "restore.json").write_text("{")
    assert swap_if_asked(filled) is None
    assert chats(database_path()) == [("Rome", "When was it founded?")]


@pytest.mark.parametrize("aside", ["", "..", "profiles"])
def test_an_order_that_this_program_did_not_write_moves_nothing(
    filled: Path, backup: Path, aside: str
) -> None:
    unpack(backup, filled)
    (filled / "restore.json").write_text(json.dumps({"aside": aside, "created": "2026"}))
    before = database_path().stat().st_ino
    assert swap_if_asked(filled) is None
    assert database_path().stat().st_ino == before


@pytest.mark.skipif(os.name == "nt", reason="names are flushed by the file system there")
def test_a_power_cut_finds_what_was_unpacked_and_renamed_on_the_disk(
    filled: Path, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    real = os.fsync

    def sync(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    ask_for_swap(filled, unpack(backup, filled).created, NOW)
    staged = [path for path in (filled / "restore").rglob("*") if path.name != "chats.sqlite3"]
    assert len(staged) > 3  # files and folders; the chats are SQLite's matter
    assert {path.stat().st_ino for path in staged} <= synced

    synced.clear()
    order, real_unlink = filled / "restore.json", Path.unlink
    before: set[int] = set()

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path == order:
            before.update(synced)
        real_unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    assert swap_if_asked(filled) is not None
    aside = next(filled.glob("before-restore-*"))
    assert {filled.stat().st_ino, aside.stat().st_ino} <= before  # the order goes last
