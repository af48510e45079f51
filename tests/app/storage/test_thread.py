import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QThread
from pytestqt.qtbot import QtBot

from app.storage import ChatStore, Conversation, MessageState, Opened, StorageError, open_store
from app.storage import thread as module
from app.storage.thread import Operation, StorageThread

T = TypeVar("T")


@pytest.fixture
def storage(qtbot: QtBot, database: Path) -> Iterator[StorageThread]:
    thread = StorageThread(database)
    with qtbot.waitSignal(thread.opened):
        thread.start()
    yield thread
    thread.close()
    assert "storage" not in [running.name for running in threading.enumerate()]


class Caller:
    """Waits for operations as a window does: through the event loop."""

    def __init__(self, qtbot: QtBot) -> None:
        self._bot = qtbot

    def result(self, operation: Operation[T]) -> T:
        results: list[T] = []
        operation.then(results.append)
        self._bot.waitUntil(lambda: bool(results))
        return results[0]

    def error(self, operation: Operation[T]) -> StorageError:
        errors: list[StorageError] = []
        operation.then(lambda _: None, errors.append)
        self._bot.waitUntil(lambda: bool(errors))
        return errors[0]


@pytest.fixture
def caller(qtbot: QtBot) -> Caller:
    return Caller(qtbot)


def test_operations_run_in_their_thread_and_answer_in_ours(
    storage: StorageThread, caller: Caller, qapp: QCoreApplication
) -> None:
    chat = caller.result(storage.run(ChatStore.create_conversation, "Rome"))
    assert chat.title == "Rome"
    assert caller.result(storage.run(_thread_name)) == "storage"
    arrived: list[object] = []
    operation = storage.run(ChatStore.conversation, chat.id)
    operation.then(lambda _: arrived.append(QThread.currentThread()))
    assert caller.result(operation) == chat
    assert arrived == [qapp.thread()]


def _thread_name(_: ChatStore) -> str:
    return threading.current_thread().name


def test_operations_keep_their_order(storage: StorageThread, caller: Caller) -> None:
    chat = caller.result(storage.run(ChatStore.create_conversation))
    heard: list[int] = []
    for number in range(50):
        row = storage.run(ChatStore.add_message, chat.id, "user", str(number))
        row.then(lambda row: heard.append(int(row.content)))
    rows = caller.result(storage.run(ChatStore.messages, chat.id))
    assert [row.content for row in rows] == [str(number) for number in range(50)]
    assert heard == list(range(50))


def test_a_failure_goes_to_who_asked_or_to_the_common_signal(
    storage: StorageThread, caller: Caller, qtbot: QtBot
) -> None:
    common: list[StorageError] = []
    storage.failed.connect(common.append)
    assert "no longer exists" in caller.error(storage.run(ChatStore.rename, 99, "x")).what
    assert common == []
    with qtbot.waitSignal(storage.failed):
        storage.run(ChatStore.rename, 99, "x").then(lambda _: pytest.fail("it was renamed"))
    assert len(common) == 1


def test_a_fault_of_ours_does_not_end_the_thread(
    storage: StorageThread, caller: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(_: ChatStore) -> None:
        raise ZeroDivisionError("a fault")

    error = caller.error(storage.run(faulty))
    assert "a fault" in error.why
    assert "unforeseen" in caplog.text
    assert caller.result(storage.run(ChatStore.conversations)) == []


def test_a_late_question_is_answered_at_once(storage: StorageThread, caller: Caller) -> None:
    operation = storage.run(ChatStore.create_conversation, "x")
    chat = caller.result(operation)
    heard: list[Conversation] = []
    operation.then(heard.append)
    assert heard == [chat]
    failing = storage.run(ChatStore.conversation, 99)
    error = caller.error(failing)
    late: list[StorageError] = []
    failing.then(heard.append, late.append)
    assert late == [error]


class Page(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.shown = 0

    def show(self, _: object) -> None:
        self.shown += 1


def test_a_closed_page_is_not_called(storage: StorageThread, caller: Caller, qtbot: QtBot) -> None:
    page, gone = Page(), Page()
    gate = threading.Event()
    storage.run(lambda _: gate.wait(10))
    storage.run(ChatStore.conversations).then(gone.show)
    storage.run(ChatStore.conversations).then(page.show)
    with qtbot.waitSignal(gone.destroyed):
        gone.deleteLater()
    gate.set()
    qtbot.waitUntil(lambda: page.shown == 1)
    assert gone.shown == 0


def test_partial_answers_are_written_about_once_a_second(
    storage: StorageThread, caller: Caller, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    real = ChatStore.update_partial

    def counted(store: ChatStore, message_id: int, content: str) -> None:
        real(store, message_id, content)
        written.append(content)

    monkeypatch.setattr(ChatStore, "update_partial", counted)
    storage._timer.setInterval(50)
    chat = caller.result(storage.run(ChatStore.create_conversation))
    answer = caller.result(storage.run(ChatStore.begin_exchange, chat.id, "Q")).answer.id
    for length in range(1, 21):
        storage.save_partial(answer, "x" * length)
    assert written == []
    qtbot.waitUntil(lambda: written == ["x" * 20])

    storage.save_partial(answer, "x" * 30)
    row = caller.result(storage.finish_message(answer, "x" * 31, MessageState.STOPPED))
    assert (row.content, row.state) == ("x" * 31, MessageState.STOPPED)
    storage.flush()
    assert caller.result(storage.run(ChatStore.messages, chat.id))[-1].content == "x" * 31
    assert written == ["x" * 20]  # the waiting one was dropped


def test_a_partial_answer_that_cannot_be_saved_is_told_once(
    storage: StorageThread, caller: Caller, qtbot: QtBot
) -> None:
    told: list[StorageError] = []
    storage.failed.connect(told.append)
    for text in ("a", "ab", "abc"):
        storage.save_partial(99, text)
        storage.flush()
    caller.result(storage.run(ChatStore.conversations))
    assert len(told) == 1


@pytest.mark.parametrize("closing", [False, True])
def test_an_answer_that_could_not_be_saved_is_tried_again(
    storage: StorageThread, caller: Caller, database: Path, closing: bool
) -> None:
    def read_only(store: ChatStore, value: str) -> None:
        store._db.execute(f"PRAGMA query_only = {value}")

    chat = caller.result(storage.run(ChatStore.create_conversation))
    answer = caller.result(storage.run(ChatStore.begin_exchange, chat.id, "Q")).answer
    storage.run(read_only, "ON")
    assert "may not write" in caller.error(storage.finish_message(answer.id, "the whole answer")).why
    storage.run(read_only, "OFF")
    if closing:
        storage.close()
        store = open_store(database).store
        rows = store.messages(chat.id)
        store.close()
    else:
        rows = caller.result(storage.run(ChatStore.messages, chat.id))
    assert (rows[1].content, rows[1].state) == ("the whole answer", MessageState.COMPLETE)


def test_an_answer_whose_chat_is_gone_is_not_tried_again(storage: StorageThread, caller: Caller) -> None:
    assert "no longer in the list" in caller.error(storage.finish_message(99, "x")).why
    assert storage._late == {}


def test_drafts_are_written_at_the_end(storage: StorageThread, caller: Caller, database: Path) -> None:
    chat = caller.result(storage.run(ChatStore.create_conversation))
    answer = caller.result(storage.run(ChatStore.begin_exchange, chat.id, "Q")).answer.id
    storage.save_draft(None, "half a sen")
    storage.save_draft(None, "half a sentence")
    storage.save_partial(answer, "half an answer")
    storage.run(ChatStore.rename, chat.id, "asked for just before the end")
    storage.close()
    opened = open_store(database)
    assert opened.store.draft(None) == "half a sentence"
    assert opened.store.messages(chat.id)[-1].content == "half an answer"
    assert opened.store.conversation(chat.id).title == "asked for just before the end"
    opened.store.close()
    assert not database.with_name(f"{database.name}-wal").exists()


def test_after_the_end_nothing_is_taken(storage: StorageThread, caller: Caller) -> None:
    storage.close()
    storage.close()
    assert "closing" in caller.error(storage.run(ChatStore.create_conversation)).what
    storage.save_draft(None, "x")


def test_what_is_asked_before_the_start_waits(qtbot: QtBot, caller: Caller, database: Path) -> None:
    storage = StorageThread(database)
    operation = storage.run(ChatStore.create_conversation, "early")
    storage.start()
    assert caller.result(operation).title == "early"
    storage.close()


def test_a_thread_that_never_started_can_be_closed(qtbot: QtBot, database: Path) -> None:
    StorageThread(database).close()
    assert not database.exists()


def test_without_a_file_one_can_chat_and_is_told(qtbot: QtBot, caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    storage = StorageThread(tmp_path / "file" / "chats.sqlite3")
    reports: list[Opened] = []
    storage.opened.connect(reports.append)
    storage.start()
    assert caller.result(storage.run(ChatStore.create_conversation, "x")).title == "x"
    (report,) = reports
    assert not report.saved
    assert "not saved" in report.notices[0].action
    assert report.notices[0].why
    storage.close()


def test_even_a_fault_while_opening_leaves_a_usable_program(
    qtbot: QtBot, caller: Caller, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(_: Path) -> Opened:
        raise RuntimeError("a fault")

    monkeypatch.setattr(module, "open_store", faulty)
    storage = StorageThread(database)
    storage.start()
    assert caller.result(storage.run(ChatStore.conversations)) == []
    storage.close()


def test_the_end_of_the_application_closes_it(qtbot: QtBot, database: Path, qapp: QCoreApplication) -> None:
    storage = StorageThread(database)
    with qtbot.waitSignal(storage.opened):
        storage.start()
    storage.save_draft(None, "kept")
    qapp.aboutToQuit.emit()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT content FROM draft").fetchall() == [("kept",)]


def test_the_search_index_is_filled_while_nothing_else_is_asked(
    storage: StorageThread, caller: Caller, qtbot: QtBot, database: Path
) -> None:
    def fill(store: ChatStore) -> None:
        chat = store.create_conversation("x")
        for number in range(120):
            store.add_message(chat.id, "user", f"message {number}")

    def behind() -> int:
        with closing(sqlite3.connect(database)) as connection:
            return int(connection.execute("SELECT count(*) FROM unindexed").fetchone()[0])

    caller.result(storage.run(fill))
    qtbot.waitUntil(lambda: behind() == 0, timeout=5000)


def test_a_fault_of_the_index_stops_nothing(
    storage: StorageThread,
    caller: Caller,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: ChatStore) -> bool:
        raise ValueError("never foreseen")

    monkeypatch.setattr(ChatStore, "index_some", fail)
    for _ in range(3):
        assert caller.result(storage.run(ChatStore.create_conversation, "x")).title == "x"
        qtbot.waitUntil(lambda: "index is behind" in caplog.text, timeout=5000)


def test_who_asked_ends_in_the_windows_thread(storage: StorageThread, qtbot: QtBot) -> None:
    ends: list[int] = []

    class Asker:  # stands for a widget: one of those must not end elsewhere
        answered = False

        def on_done(self, _: object) -> None:
            type(self).answered = True

        def __del__(self) -> None:
            ends.append(threading.get_ident())

    storage.run(_thread_name).then(Asker().on_done)
    qtbot.waitUntil(lambda: Asker.answered)
    assert ends == [threading.get_ident()]  # although the thread may still hold its last operation
