"""Searching the saved chats: what is found, and that the index follows the messages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app.storage import ChatStore, MessageState
from app.storage.listing import MOST_FOUND


def titles(store: ChatStore, sought: str) -> list[str]:
    return [line.conversation.title for line in store.conversations(sought)]


def say(store: ChatStore, title: str, *texts: str) -> list[int]:
    chat = store.create_conversation(title)
    return [store.add_message(chat.id, "user", text).id for text in texts]


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        ("founded rome", ["any order"]),
        ('"rome was founded"', ["any order"]),
        ('"founded rome"', []),
        ("京", ["Chinese"]),
        ("北京", ["Chinese"]),
        ("在北京", ["Chinese"]),
        ("京市", ["Chinese"]),  # the last two characters of a text
        ("市", ["Chinese"]),
        ("울", ["Korean"]),
        ("서울", ["Korean"]),
        ("서울에서", ["Korean"]),
        ("にほん", ["Japanese"]),
        ("サッカー", ["Japanese"]),  # written with half-width letters
        ("القاهرة", ["Arabic"]),
        ("a 京", []),
        ("wide", ["wide"]),
        ("NOT", ["operators"]),
        ("AND (", ["operators"]),
        ("*", ["operators"]),
    ],
)
def test_words_in_any_language(store: ChatStore, sought: str, found: list[str]) -> None:
    say(store, "any order", "Rome was founded in 753 BC.")
    say(store, "Chinese", "我住在北京市")
    say(store, "Korean", "나는 서울에서 산다")
    say(store, "Japanese", "にほんご ｻｯｶｰ")
    say(store, "Arabic", "أنا من القاهرة")
    say(store, "wide", "ＷＩＤＥ letters")
    say(store, "operators", "this AND (that) NOT x*")
    assert titles(store, sought) == found


def test_a_result_says_which_message_it_is_in(store: ChatStore) -> None:
    _, older, newer, _ = say(store, "x", "no", "a needle", "another needle", "no")
    (line,) = store.conversations("needle")
    assert line.place == newer
    assert line.preview == "another needle"
    assert older < newer
    say(store, "needle in the title", "nothing")
    assert store.conversations("needle")[0].place is None


def test_what_is_taken_back_deleted_or_changed_is_not_found(store: ChatStore, clock: Any) -> None:
    chat = store.create_conversation("x")
    answer = store.begin_exchange(chat.id, "question").answer.id
    store.update_partial(answer, "half a needle")
    assert titles(store, "needle") == []  # while it is written
    store.finish_message(answer, "needle", MessageState.STOPPED)
    assert titles(store, "needle") == ["x"]
    store.begin_regeneration(chat.id)
    assert titles(store, "needle") == []
    say(store, "y", "needle")
    store.delete(store.conversations("needle")[0].conversation.id)
    assert titles(store, "needle") == []


def test_the_text_of_purged_chats_leaves_the_index(store: ChatStore, clock: Any) -> None:
    say(store, "kept", "needle kept")
    say(store, "purged", "needle secret")
    assert len(titles(store, "needle")) == 2
    store.delete(store.conversations("secret")[0].conversation.id)
    clock.now += timedelta(days=8)
    assert store.purge() == 1
    held = b"".join(bytes(row[0]) for row in store._db.execute("SELECT block FROM message_index_data"))
    assert b"kep" in held
    assert b"ret" not in held
    assert titles(store, "needle") == ["kept"]


def test_the_index_is_filled_step_by_step(store: ChatStore) -> None:
    say(store, "x", *(f"message {number}" for number in range(120)))
    steps = 0
    while store.index_some():
        steps += 1
    assert steps == 3
    assert titles(store, "message 119") == ["x"]


def test_a_damaged_index_is_made_anew(store: ChatStore, reopen: Callable[[], ChatStore]) -> None:
    say(store, "x", "some needle in a text")
    assert titles(store, "needle") == ["x"]
    store._db.execute("DELETE FROM message_index_data WHERE id > 10")
    store.close()
    again = reopen()
    assert titles(again, "needle") == ["x"]
    again._db.execute("INSERT INTO message_index (message_index) VALUES ('integrity-check')")
    assert titles(again, "ne") == ["x"]


def test_of_what_is_everywhere_the_newest_chats_are_found(store: ChatStore) -> None:
    store._db.execute("PRAGMA synchronous = OFF")
    for number in range(MOST_FOUND + 5):
        say(store, str(number), "the same")
    found = titles(store, "the same")
    assert len(found) == MOST_FOUND
    assert found[0] == str(MOST_FOUND + 4)


@pytest.mark.slow
def test_a_search_looks_at_few_of_many_messages(store: ChatStore) -> None:
    """Counted in steps of SQLite's machine, of which a look at each message takes more than 150,000.

    Of 100,000 messages that are three times as long, searches took 1 to 30 ms on two cores.
    """
    words = ["rome", "paris", "the", "of", "北京", "서울", "needle"]
    with_needle = 15_555
    store._db.execute("PRAGMA synchronous = OFF")
    with store._db:
        store._db.execute("BEGIN")
        for chat in range(1, 2001):
            insert = "INSERT INTO conversation (title, created, updated, activity) VALUES (?, 0, 0, ?)"
            store._db.execute(insert, (f"chat {chat}", chat))
        for number in range(1, 20_001):
            text = " ".join(f"{words[(number + n) % 5]}{number * (n + 7) % 9973}" for n in range(8))
            text += " needle 首尔" if number == with_needle else ""
            store._db.execute(
                "INSERT INTO message (conversation_id, role, content, state, created)"
                " VALUES (?, 'user', ?, 'complete', 0)",
                (number % 2000 + 1, text),
            )
    while store.index_some():
        pass
    everywhere = {sought: _steps(store, sought) for sought in ("the", "rome paris", "e", "京")}
    assert max(everywhere.values()) < 120_000, everywhere
    rare = {
        sought: _steps(store, sought) for sought in ("needle", "首尔", "首", "zz", "no such", "needle 首")
    }
    assert max(rare.values()) < 5_000, rare
    assert len(store.conversations("首尔")) == len(store.conversations("needle")) == 1


def _steps(store: ChatStore, sought: str) -> int:
    """How many instructions SQLite carries out for a search, to about a hundred."""
    hundreds = 0

    def count() -> int:
        nonlocal hundreds
        hundreds += 1
        return 0  # go on

    store.conversations(sought)  # what is read once for all searches
    store._db.set_progress_handler(count, 100)
    store.conversations(sought)
    store._db.set_progress_handler(None, 0)
    return 100 * hundreds


def test_titles_that_change_are_found_as_they_are_now(
    store: ChatStore, reopen: Callable[[], ChatStore]
) -> None:
    chat = store.create_conversation("Rome").id
    other = reopen()  # another window
    for window, title in ((store, "Oslo"), (other, "Paris"), (store, "Riga")):
        window.rename(chat, title)
        assert [line.conversation.id for line in store.conversations(title.lower())] == [chat]
        assert [line.conversation.id for line in other.conversations(title.lower())] == [chat]
    other.delete(chat)
    assert store.conversations("riga") == []
