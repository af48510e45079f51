"""A program killed at any moment loses nothing that the store has acknowledged."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.storage import ChatStore, MessageState, open_store

ROOT = Path(__file__).parents[3]
KILLS = 200


@contextmanager
def writer(database: Path, seed: int, mode: str = "chat") -> Iterator[subprocess.Popen[str]]:
    program = [sys.executable, str(Path(__file__).with_name("writer.py")), str(database), str(seed), mode]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, encoding="utf-8"
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def whole_answer(message_id: int) -> str:
    return "".join(f"{message_id}:{number} " for number in range(200))


def killed(database: Path, luck: random.Random) -> list[list[str]]:
    """What a writer had acknowledged when it was killed, as lists of words."""
    with writer(database, luck.randrange(10**9)) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(luck.randrange(1, 40))]
        time.sleep(luck.random() * 0.003)  # somewhere inside the next transactions
        process.kill()  # SIGKILL; TerminateProcess on Windows
        lines += process.stdout.readlines()
    return [line.split(maxsplit=2) for line in lines if line.endswith("\n")]


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
        if number % 20 == 0:  # a fresh file, so that reading all of it stays quick
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
    with writer(database, 0, "hold") as process:
        assert process.stdout is not None
        answer = int(process.stdout.readline().split()[1])
        opened = open_store(database)
        chat = opened.store.conversations()[0].conversation.id
        assert opened.interrupted == ()
        assert opened.store.messages(chat)[-1].state is MessageState.STREAMING
        opened.store.close()
        process.kill()
        process.wait()
        opened = open_store(database)
        assert [row.id for row in opened.interrupted] == [answer]
        assert opened.store.messages(chat)[-1].state is MessageState.INTERRUPTED
        opened.store.close()
