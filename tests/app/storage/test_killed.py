"""A program killed at any moment loses nothing that the store has acknowledged."""

import multiprocessing
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from app.storage import ChatStore, MessageState, open_store
from tests.app.storage import writer

KILLS = 200
# A process of its own each time; where the system can, divided off one that has imported all that it needs.
PROCESSES = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
PROCESSES.set_forkserver_preload([writer.__name__])


@contextmanager
def writing(database: Path, seed: int, mode: str = "chat") -> Iterator[tuple[BaseProcess, Connection]]:
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=writer.main, args=(database, seed, mode, theirs), daemon=True)
    with ours:
        process.start()
        theirs.close()  # so that ours ends when the process does
        try:
            yield process, ours
        finally:
            process.kill()
            process.join()
            process.close()


def whole_answer(message_id: int) -> str:
    return "".join(f"{message_id}:{number} " for number in range(200))


def last_lines(connection: Connection) -> Iterator[str]:
    """What was sent whole before the process ended."""
    try:
        while True:
            yield connection.recv()
    except (EOFError, OSError):  # between two lines, or within one
        return


def killed(database: Path, luck: random.Random) -> list[list[str]]:
    """What a writer had acknowledged when it was killed, as lists of words."""
    with writing(database, luck.randrange(10**9)) as (process, connection):
        lines = [connection.recv() for _ in range(luck.randrange(1, 40))]
        time.sleep(luck.random() * 0.003)  # somewhere inside the next transactions
        process.kill()  # SIGKILL; TerminateProcess on Windows
        lines += last_lines(connection)
    return [line.split(maxsplit=2) for line in lines]


def unrestored(acknowledged: list[list[str]]) -> set[int]:
    """The messages of chats in which a deleted turn was not yet brought back."""
    gone: set[int] = set()
    latest: set[int] = set()
    for kind, _, rest in acknowledged:
        if kind == "restored":
            latest = set()
        else:
            gone |= latest  # the program that would have said so was killed
            latest = {int(number) for number in rest.split(",")} if kind == "deleting" else set()
    return gone | latest


def check_ways(store: ChatStore) -> None:
    """In each chat, one unbroken way from its beginning is shown, and all that is shown can be found."""
    for line in store.conversations()[:5]:
        shown = store.messages(line.conversation.id)
        assert [row.parent for row in shown] == [None, *(row.id for row in shown)][: len(shown)]
        for row in shown[-2:]:
            if row.content:
                found = {hit.conversation.id for hit in store.conversations(f'"{row.content[:40]}"')}
                assert line.conversation.id in found


def check(store: ChatStore, acknowledged: list[list[str]], ended: set[int]) -> None:
    deleting = unrestored(acknowledged)
    rows = {
        row.id: row
        for line in store.conversations()
        for row in store.messages(line.conversation.id, all_versions=True)
    }
    check_ways(store)
    for kind, number, rest in acknowledged:
        row_id = int(number)
        if kind == "chat":
            assert store.conversation(row_id).title == rest.strip()
            continue
        if kind in ("shown", "deleting", "restored"):
            continue
        if row_id not in rows and row_id in deleting:
            continue  # the program died between the deletion and its undo
        if row_id not in rows and kind == "partial" and int(rest) == 0:
            continue  # a version that never got a word
        row = rows[row_id]
        if kind == "question":
            assert row.content == rest.strip()
            assert row.state is MessageState.COMPLETE
            continue
        assert len(row.content) >= int(rest)
        assert row.content == whole_answer(row_id)[: len(row.content)]
        if kind == "finished":
            ended.add(row_id)
            assert row.state is MessageState.COMPLETE
            assert len(row.content) == int(rest)
    for row in rows.values():
        # The one transaction that was under way when the program died may have finished an answer, too.
        allowed = (
            {MessageState.COMPLETE} if row.id in ended else {MessageState.COMPLETE, MessageState.INTERRUPTED}
        )
        assert row.state in allowed


@pytest.mark.slow
def test_nothing_acknowledged_is_lost(database: Path) -> None:
    luck = random.Random(20260102)
    everything: list[list[str]] = []
    kinds: set[str] = set()
    interrupted = 0
    for number in range(KILLS):
        if number % 10 == 0:  # a fresh file, so that reading all of it stays quick
            database = database.with_name(f"chats{number}.sqlite3")
            everything = []
        everything += killed(database, luck)
        opened = open_store(database)
        assert opened.notices == ()
        interrupted += len(opened.interrupted)
        check(opened.store, everything, set())
        opened.store.close()
        kinds |= {kind for kind, _, _ in everything}
    assert kinds == {
        "chat",
        "question",
        "partial",
        "finished",
        "shown",
        "deleting",
        "restored",
    }  # the kills fell among all of them
    assert interrupted > 0
    assert list(database.with_name(f"{database.name}.runs").iterdir()) == []  # the dead left no locks


def test_a_living_window_keeps_its_answer(database: Path) -> None:
    with writing(database, 0, "hold") as (process, connection):
        answer = int(connection.recv().split()[1])
        opened = open_store(database)
        chat = opened.store.conversations()[0].conversation.id
        assert opened.interrupted == ()
        assert opened.store.messages(chat)[-1].state is MessageState.STREAMING
        opened.store.close()
        process.kill()
        process.join()
        opened = open_store(database)
        assert [row.id for row in opened.interrupted] == [answer]
        assert opened.store.messages(chat)[-1].state is MessageState.INTERRUPTED
        opened.store.close()
