import zipfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.export import MARKDOWN, ExportOptions
from app.export.job import ExportJob, Read, archive_name, run_export, saved_words
from app.storage import Conversation, MessageRow
from engine.errors import Cancelled, FileError
from engine.progress import CancelToken, Progress, ignore_progress


@pytest.fixture
def read(conversation: Conversation, messages: list[MessageRow]) -> Read:
    """Chats 1 and 2 have titles that differ in case alone."""
    titles = {1: "rome", 2: "Rome", 3: "Paris"}

    def read_chat(chat_id: int) -> tuple[Conversation, Sequence[MessageRow]]:
        return replace(conversation, title=titles[chat_id]), messages

    return read_chat


def job(path: Path, *chats: int, archive: bool = False, replace: bool = False) -> ExportJob:
    return ExportJob(chats, path, MARKDOWN, ExportOptions(), archive, replace)


def test_one_chat_is_a_file(tmp_path: Path, read: Read) -> None:
    path = run_export(job(tmp_path / "Rome.md", 2), read, ignore_progress, CancelToken())
    assert path == tmp_path / "Rome.md"
    assert path.read_text("utf-8").startswith("# Rome\n")
    assert str(path) in saved_words(job(path, 2), path)


def test_a_file_is_replaced_only_where_the_user_said_so(tmp_path: Path, read: Read) -> None:
    old = tmp_path / "Rome.md"
    old.write_text("old")
    path = run_export(job(old, 2), read, ignore_progress, CancelToken())
    assert (path.name, old.read_text()) == ("Rome (2).md", "old")
    assert run_export(job(old, 2, replace=True), read, ignore_progress, CancelToken()) == old
    assert old.read_text("utf-8") != "old"


def test_several_chats_are_a_zip(tmp_path: Path, read: Read) -> None:
    seen: list[Progress] = []
    work = job(tmp_path / "all.zip", 1, 2, 3, archive=True)
    path = run_export(work, read, seen.append, CancelToken())
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["rome.md", "Rome (2).md", "Paris.md"]
        assert archive.read("Paris.md").decode("utf-8").startswith("# Paris\n")
        assert archive.testzip() is None
        assert archive.infolist()[0].date_time[:3] in {(2026, 1, 2), (2026, 1, 1)}
    assert [(step.done, step.total) for step in seen] == [(0, 3), (1, 3), (2, 3)]
    assert "3 chats" in saved_words(work, path)


@pytest.mark.parametrize("archive", [True, False])
def test_a_cancelled_export_leaves_nothing(tmp_path: Path, read: Read, archive: bool) -> None:
    token = CancelToken()

    def stop(chat_id: int) -> tuple[Conversation, Sequence[MessageRow]]:
        token.cancel()
        token.raise_if_cancelled()
        return read(chat_id)

    (tmp_path / "x").write_text("old")
    with pytest.raises(Cancelled):
        run_export(job(tmp_path / "x", 1, 2, archive=archive, replace=True), stop, ignore_progress, token)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "old"


@pytest.mark.parametrize("archive", [True, False])
def test_what_cannot_be_written_says_why(tmp_path: Path, read: Read, archive: bool) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError) as caught:
        run_export(job(tmp_path / "file" / "x", 1, archive=archive), read, ignore_progress, CancelToken())
    assert caught.value.why
    assert caught.value.action


def test_an_archive_has_the_day_in_its_name() -> None:
    assert archive_name(datetime(2026, 1, 2, tzinfo=UTC)) == "Fiddler Chat 2026-01-02.zip"
