import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.storage import ChatStore, StorageError
from app.storage.thread import StorageThread
from app.storage.waiting import wait_for
from engine.errors import Cancelled
from engine.progress import CancelToken


@pytest.fixture
def storage(qtbot: QtBot, tmp_path: Path) -> Iterator[StorageThread]:
    thread = StorageThread(tmp_path / "chats.sqlite3")
    yield thread
    thread.close()
    thread.deleteLater()


def outcome_of(
    qtbot: QtBot, storage: StorageThread, cancel: CancelToken, method: object, *args: object
) -> object:
    """What `wait_for` gives in a thread of its own, or the error it raises."""
    found: list[object] = []

    def work() -> None:
        try:
            found.append(wait_for(storage, cancel, method, *args))  # type: ignore[arg-type]
        except (StorageError, Cancelled, TimeoutError) as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    qtbot.waitUntil(lambda: bool(found), timeout=5000)
    thread.join()
    return found[0]


def test_the_result_comes_back(qtbot: QtBot, storage: StorageThread) -> None:
    storage.start()
    chat = outcome_of(qtbot, storage, CancelToken(), ChatStore.create_conversation, "Rome")
    assert getattr(chat, "title", "") == "Rome"
    error = outcome_of(qtbot, storage, CancelToken(), ChatStore.conversation, 77)
    assert isinstance(error, StorageError)


def test_an_error_of_the_operations_own_comes_back(qtbot: QtBot, storage: StorageThread) -> None:
    def slow(_: ChatStore) -> None:
        raise TimeoutError("the operation's own")

    storage.start()
    assert str(outcome_of(qtbot, storage, CancelToken(), slow)) == "the operation's own"


def test_waiting_can_be_cancelled(qtbot: QtBot, storage: StorageThread) -> None:
    token = CancelToken()
    token.cancel()
    assert isinstance(outcome_of(qtbot, storage, token, ChatStore.conversations), Cancelled)  # not started
    storage.start()


def test_closed_chats_answer_nothing(qtbot: QtBot, storage: StorageThread) -> None:
    storage.start()
    storage.close()
    failed: list[object] = []
    storage.failed.connect(failed.append)
    error = outcome_of(qtbot, storage, CancelToken(), ChatStore.conversations)
    assert isinstance(error, StorageError)
    assert "closing" in error.what
