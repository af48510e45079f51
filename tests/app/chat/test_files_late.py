"""Files that are still being read when their chat is left."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.attachments.form import compose
from app.attachments.reading import ReadFiles, read_files
from app.storage import ChatStore
from app.storage.thread import StorageThread
from app.window import MainWindow
from tests.app.chat.composing import NOTE
from tests.app.chat.hands import ask, press, read, write

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def note(tmp_path: Path) -> Path:
    path = tmp_path / NOTE.name
    path.write_text(NOTE.content)
    return path


@pytest.fixture
def gate(note: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The note is not read before this is set; other files are."""
    opened = threading.Event()

    def slowly(paths: Sequence[Path], *, sort_out_chats: bool = False) -> ReadFiles:
        if note in paths:
            opened.wait(10)
        return read_files(paths, sort_out_chats=sort_out_chats)

    monkeypatch.setattr("app.attachments.reader.read_files", slowly)
    yield opened
    opened.set()


def leave_chat(qtbot: QtBot, window: MainWindow) -> int:
    """Go from the chat that is shown to a new one; returns its id."""
    chat = window.session.conversation
    assert chat is not None
    window.commands.new_chat()
    qtbot.waitUntil(lambda: window.session.conversation is None, timeout=5000)
    return chat.id


def test_they_arrive_in_the_draft_of_the_chat_that_was_left(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, note: Path, gate: threading.Event
) -> None:
    ask(qtbot, window)
    composer = window.page.composer
    write(qtbot, window, "When?")
    composer.files.add_paths([note])
    chat = leave_chat(qtbot, window)
    write(qtbot, window, "Something else")
    gate.set()
    qtbot.waitUntil(
        lambda: read(qtbot, storage, ChatStore.draft, chat) == compose([NOTE], "When?"), timeout=5000
    )
    assert composer.content == "Something else"
    window.session.open(chat)
    qtbot.waitUntil(lambda: composer.content == compose([NOTE], "When?"), timeout=5000)


def test_they_arrive_in_a_chat_that_is_shown_again(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, note: Path, gate: threading.Event
) -> None:
    ask(qtbot, window)
    composer = window.page.composer
    write(qtbot, window, "When?")
    composer.files.add_paths([note])
    chat = leave_chat(qtbot, window)
    window.session.open(chat)
    qtbot.waitUntil(lambda: composer.text == "When?", timeout=5000)
    press(qtbot, window)
    assert "still being read" in composer.files.notice.text
    gate.set()
    qtbot.waitUntil(lambda: composer.content == compose([NOTE], "When?"), timeout=5000)
    assert read(qtbot, storage, ChatStore.draft, chat) == compose([NOTE], "When?")


def test_they_stay_with_a_chat_that_begins_meanwhile(
    qtbot: QtBot, window: MainWindow, storage: StorageThread, note: Path, gate: threading.Event
) -> None:
    write(qtbot, window, "First")
    press(qtbot, window)
    assert window.session.conversation is None  # it is still being saved
    window.page.composer.files.add_paths([note])
    qtbot.waitUntil(lambda: window.session.conversation is not None, timeout=5000)
    chat = leave_chat(qtbot, window)
    gate.set()
    qtbot.waitUntil(lambda: read(qtbot, storage, ChatStore.draft, chat) == compose([NOTE], ""), timeout=5000)
    assert window.page.composer.content == ""


def test_other_files_do_not_wait_for_them_and_errors_are_told(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, note: Path, gate: threading.Event
) -> None:
    ask(qtbot, window)
    files = window.page.composer.files
    files.add_paths([note, tmp_path / "missing.txt"])
    leave_chat(qtbot, window)
    (tmp_path / "other.txt").write_text("other")
    files.add_paths([tmp_path / "other.txt"])
    qtbot.waitUntil(lambda: [file.name for file in files.files] == ["other.txt"], timeout=5000)
    gate.set()
    qtbot.waitUntil(lambda: "missing.txt" in files.notice.text, timeout=5000)
    assert [file.name for file in files.files] == ["other.txt"]
