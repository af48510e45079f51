"""The whole window on a disk that is damaged, read-only or full, and with a clock that jumps."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.dialogs import MessageDialog
from app.paths import database_path
from app.storage import Notice, database, open_store, opening
from app.storage.thread import StorageThread
from app.window import MainWindow

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")

RELEASED = Path(__file__).parents[1] / "storage" / "released"
Start = Callable[[], MainWindow]


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Start:
    """Starts the window, after the test has prepared the disk."""
    return lambda: request.getfixturevalue("window")


def listed(window: MainWindow) -> list[str]:
    model = window.sidebar.model
    return [str(model.index(row).data()) for row in range(model.rowCount())]


def ask(qtbot: QtBot, window: MainWindow, text: str) -> None:
    window.session.send(text)
    qtbot.waitUntil(lambda: not window.session.busy and bool(window.session.messages), timeout=5000)
    assert window.session.messages[-1].content == "Paris is the capital."


def with_chats(*titles: str) -> Path:
    """A database with these chats, the last of them the latest."""
    path = database_path()
    store = open_store(path).store
    for title in titles:
        chat = store.create_conversation(title)
        store.add_message(chat.id, "user", f"{title} " + "text " * 300)
    store.close()
    return path


def readonly(*_: object) -> sqlite3.Connection:
    error = sqlite3.OperationalError("attempt to write a readonly database")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    raise error


def test_a_damaged_database_is_rescued_and_said_so(qtbot: QtBot, start: Start) -> None:
    path = with_chats("a", "b", "c")
    content = bytearray(path.read_bytes())
    content[100:300] = b"\xee" * 200  # the schema: nothing in the file can be found any more
    path.write_bytes(content)
    window = start()
    qtbot.waitUntil(lambda: bool(window.page.notice.text), timeout=5000)
    said = window.page.notice.text
    assert said.startswith("The file with your chats was damaged and has been replaced.")
    (aside,) = [file for file in path.parent.glob("*.damaged-*") if not file.name.endswith(("-wal", "-shm"))]
    assert str(aside) in said
    assert aside.read_bytes() == bytes(content)
    ask(qtbot, window, "Does it work again?")
    qtbot.waitUntil(lambda: "Does it work again?" in listed(window), timeout=5000)
    assert not window.findChildren(MessageDialog)


def test_a_folder_that_may_not_be_written_leaves_the_chats_readable(
    qtbot: QtBot, start: Start, storage: StorageThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_chats("a", "b")
    before = path.read_bytes()
    connect = database.connect
    monkeypatch.setattr(opening, "connect", lambda path: readonly() if path is not None else connect(path))
    window = start()
    qtbot.waitUntil(lambda: bool(window.page.notice.text), timeout=5000)
    assert f"may not write to {path.parent}" in window.page.notice.text
    assert "The chats that were saved before are shown all the same." in window.page.notice.text
    assert "Chats of this session are not saved: export what you want to keep." in window.page.notice.text
    qtbot.waitUntil(lambda: listed(window) == ["b", "a"], timeout=5000)
    ask(qtbot, window, "Hello?")
    qtbot.waitUntil(lambda: listed(window) == ["Hello?", "b", "a"], timeout=5000)
    storage.close()
    assert path.read_bytes() == before


def test_a_data_folder_that_cannot_be_made_does_not_stop_a_chat(
    qtbot: QtBot, start: Start, data_dir: Path
) -> None:
    data_dir.parent.mkdir(exist_ok=True)
    data_dir.write_text("a file in its place")
    window = start()
    qtbot.waitUntil(lambda: "are not saved" in window.page.notice.text, timeout=5000)
    assert "saved before" not in window.page.notice.text
    ask(qtbot, window, "Hello?")


def test_an_old_file_on_a_full_disk_stays_as_it_is_and_can_be_read(
    qtbot: QtBot, start: Start, storage: StorageThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database_path()
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((RELEASED / "v1.sql").read_text("utf-8"))
    connect = database.connect

    def full(path: Path | None) -> sqlite3.Connection:
        connection = connect(path)
        if path is not None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(opening, "connect", full)
    window = start()
    qtbot.waitUntil(lambda: "is full" in window.page.notice.text, timeout=5000)
    assert "Free some space" in window.page.notice.text
    assert "are not saved" in window.page.notice.text
    qtbot.waitUntil(lambda: "Rome" in listed(window), timeout=5000)
    storage.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 1
        assert connection.execute("SELECT count(*) FROM message").fetchone()[0] > 0


def test_a_disk_that_fills_up_gives_the_text_back(qtbot: QtBot, start: Start, storage: StorageThread) -> None:
    window = start()
    ask(qtbot, window, "first")
    full = "PRAGMA max_page_count = 1"  # less than there is: not one page more
    storage.run(lambda store: store._db.execute(full).fetchone()[0])
    window.page.composer.set_text("x" * 100_000)
    window.page.composer.button.click()
    qtbot.waitUntil(lambda: bool(window.findChildren(MessageDialog)), timeout=5000)
    dialog = window.findChildren(MessageDialog)[0]
    assert "is full" in dialog.accessibleDescription()
    assert "What was saved before is unchanged." in dialog.accessibleDescription()
    assert window.page.composer.text == "x" * 100_000
    for each in window.findChildren(MessageDialog):
        each.reject()
    storage.run(lambda store: store._db.execute("PRAGMA max_page_count = 1000000").fetchone()[0])
    assert [row.content for row in window.session.messages] == ["first", "Paris is the capital."]


@pytest.mark.parametrize("jump", [timedelta(days=-6000), timedelta(days=6000), timedelta(days=-90_000)])
def test_a_clock_that_jumps_keeps_the_order_and_everything_written(
    qtbot: QtBot, start: Start, monkeypatch: pytest.MonkeyPatch, jump: timedelta
) -> None:
    with_chats("a", "b")
    monkeypatch.setattr(
        "app.storage.thread.open_store", partial(open_store, clock=lambda: datetime.now(UTC) + jump)
    )
    window = start()
    qtbot.waitUntil(lambda: listed(window) == ["b", "a"], timeout=5000)
    ask(qtbot, window, "then")
    qtbot.waitUntil(lambda: listed(window) == ["then", "b", "a"], timeout=5000)
    assert not window.page.notice.text
    window.chats.delete((window.sidebar.model.ids[2],))
    qtbot.waitUntil(lambda: listed(window) == ["then", "b"], timeout=5000)
    window.sidebar.undo.button.click()
    qtbot.waitUntil(lambda: len(listed(window)) == 3, timeout=5000)


def test_all_that_happened_is_told_and_good_news_are_no_warning(qtbot: QtBot, start: Start) -> None:
    window = start()
    notice = window.page.notice
    window.show_notice(Notice("The backup has been restored.", good=True))
    assert notice.property("notice") == "remark"
    window.show_notice(Notice("The file with your chats was damaged.", why="A page is."))
    assert notice.text == "The backup has been restored.\nThe file with your chats was damaged. A page is."
    assert notice.property("notice") == "warning"
    notice.dismissed.emit()
    window.show_notice(Notice("Brought to this version's format.", good=True))
    assert notice.text == "Brought to this version's format."
    assert notice.property("notice") == "remark"
