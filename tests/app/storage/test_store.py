import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.storage import ChatStore, MessageState, StorageError
from app.storage.figures import params_from_json, stats_from_json
from app.storage.listing import SummaryCache
from engine.events import ExpertHits, FinishReason, GenerationStats
from engine.params import GenerationParams, Message, SamplingParams
from tests.app.storage.model import take_back

PARAMS = GenerationParams(SamplingParams(temperature=0.5, top_k=40, seed=7), max_tokens=50, stop=("###",))


def test_a_chat_survives_a_restart(store: ChatStore, reopen: Callable[[], ChatStore]) -> None:
    chat = store.create_conversation("Rome", model="starter", system_prompt="Be brief.")
    start = store.begin_exchange(chat.id, "When was Rome founded?", model="starter", params=PARAMS)
    stats = GenerationStats(
        prompt_tokens=12,
        tokens_per_second=45.5,
        hits=ExpertHits(np.arange(2 * 3 * 4 * 4).reshape(2, 3, 4, 4)),
    )
    store.finish_message(start.answer.id, "In 753 BC.", stats=stats, reason=FinishReason.EOS)
    store.close()

    again = reopen()
    assert again.conversation(chat.id).system_prompt == "Be brief."
    question, answer = again.messages(chat.id)
    assert [question.to_message(), answer.to_message()] == [
        Message("user", "When was Rome founded?"),
        Message("assistant", "In 753 BC."),
    ]
    assert answer.state is MessageState.COMPLETE
    assert answer.reason == "eos"
    assert answer.parent == question.id
    assert answer.finished is not None
    assert answer.finished > answer.created
    assert answer.params is not None
    assert params_from_json(answer.params) == PARAMS
    assert answer.stats is not None
    read = stats_from_json(answer.stats)
    assert (read.prompt_tokens, read.tokens_per_second) == (12, 45.5)
    np.testing.assert_array_equal(read.hits.counts, stats.hits.counts)


def test_the_question_is_on_the_disk_before_the_answer_starts(store: ChatStore, database: Path) -> None:
    chat = store.create_conversation()
    exchange = store.begin_exchange(chat.id, "Hello?")
    assert [row.content for row in exchange.history] == ["Hello?"]
    with sqlite3.connect(database) as other:
        rows = other.execute("SELECT content, state FROM message ORDER BY id").fetchall()
    other.close()
    assert rows == [("Hello?", "complete"), ("", "streaming")]


def test_what_is_asked_of_sqlite(store: ChatStore) -> None:
    values = {
        name: store._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    }
    assert values == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 5000}


def test_the_latest_change_comes_first_whatever_the_clock_says(store: ChatStore, clock: Any) -> None:
    first, second, third = (store.create_conversation(name) for name in ("a", "b", "c"))
    clock.now -= timedelta(days=400)
    store.add_message(first.id, "user", "later")
    assert [line.conversation.id for line in store.conversations()] == [first.id, third.id, second.id]
    store.rename(second.id, "not a reason to move")
    assert [line.conversation.id for line in store.conversations()] == [first.id, third.id, second.id]


def test_previews_show_the_last_text_on_one_line(store: ChatStore) -> None:
    chat = store.create_conversation("x")
    assert store.conversations()[0].preview == ""
    store.add_message(chat.id, "user", "first")
    store.begin_exchange(chat.id, "two\n\n  lines " + "word " * 100)  # its answer is empty so far
    line = store.conversations()[0]
    assert line.preview.startswith("two lines word word")
    assert line.preview.endswith("…")
    assert len(line.preview) <= 160
    assert line.messages == 3


@pytest.mark.parametrize(
    ("sought", "found"),
    [
        ("rome", ["in text", "Rome in title"]),
        ("100%", ["percent"]),
        ("0_0", ["underscore"]),
        ("back\\slash", ["backslash"]),
        ("ÉCOLE", ["accents"]),
        ("北京", ["chinese"]),
        ("  ROME ", ["in text", "Rome in title"]),
        ("nothing like this", []),
        ("straße", ["sharp s"]),
        ("rome" * 20000, []),
    ],
)
def test_search_in_titles_and_texts(store: ChatStore, sought: str, found: list[str]) -> None:
    texts = {
        "Rome in title": "nothing",
        "percent": "it is 100% sure",
        "no percent": "it is 1000 sure",
        "underscore": "0_0",
        "no underscore": "0x0",
        "backslash": "back\\slash",
        "accents": "l'école",
        "chinese": "我住在北京市",
        "sharp s": "Die STRASSE",
        "in text": "All roads lead to Rome.",
        "taken back": "",
    }
    for title, text in texts.items():
        chat = store.create_conversation(title)
        store.add_message(chat.id, "user", text)
    store.begin_exchange(chat.id, "Rome, but taken back")
    take_back(store, chat.id)
    deleted = store.create_conversation("Rome 100% 0_0 école 北京 straße")
    store.delete(deleted.id)
    assert [line.conversation.title for line in store.conversations(sought)] == found


def test_a_search_shows_the_passage(store: ChatStore) -> None:
    chat = store.create_conversation("x")
    store.add_message(chat.id, "user", "before " * 100 + "the NEEDLE is here " + "after " * 100)
    store.add_message(chat.id, "user", "the end")
    preview = store.conversations("needle")[0].preview
    assert "NEEDLE" in preview
    assert preview.startswith("…")
    assert preview.endswith("…")


def test_deleting_can_be_undone_until_it_is_purged(store: ChatStore, clock: Any) -> None:
    keep, lose = store.create_conversation("keep"), store.create_conversation("lose")
    store.add_message(lose.id, "user", "text")
    store.save_draft(lose.id, "unsent")
    assert store.delete(lose.id).deleted is not None
    assert [line.conversation.id for line in store.conversations()] == [keep.id]
    store.undelete(lose.id)
    assert [row.content for row in store.messages(lose.id)] == ["text"]

    store.delete(lose.id)
    assert store.purge() == 0
    clock.now += timedelta(days=8)
    assert store.purge() == 1
    with pytest.raises(StorageError, match="no longer exists"):
        store.undelete(lose.id)
    assert store.messages(lose.id) == []
    assert store.draft(lose.id) == ""
    assert store.create_conversation().id > lose.id  # an id is never used again


def test_a_regenerated_answer_keeps_the_earlier_one(store: ChatStore) -> None:
    chat = store.create_conversation()
    first = store.begin_exchange(chat.id, "Q").answer
    store.finish_message(first.id, "bad answer")
    exchange = store.begin_regeneration(chat.id)
    assert [row.content for row in exchange.history] == ["Q"]
    store.finish_message(exchange.answer.id, "good answer")
    assert [row.content for row in store.messages(chat.id)] == ["Q", "good answer"]
    everything = store.messages(chat.id, all_versions=True)
    assert [(row.content, row.active) for row in everything] == [
        ("Q", True),
        ("bad answer", False),
        ("good answer", True),
    ]
    assert everything[1].parent == everything[2].parent == everything[0].id


def test_a_chat_whose_last_exchanges_were_taken_back_goes_on_before_them(store: ChatStore) -> None:
    chat = store.create_conversation()
    store.finish_message(store.begin_exchange(chat.id, "one").answer.id, "1")
    store.finish_message(store.begin_exchange(chat.id, "two").answer.id, "2")
    assert take_back(store, chat.id)
    assert [row.content for row in store.messages(chat.id)] == ["one", "1"]
    assert store.begin_exchange(chat.id, "three").history[-1].parent == store.messages(chat.id)[1].id
    assert take_back(store, chat.id)
    assert take_back(store, chat.id)
    assert not take_back(store, chat.id)
    with pytest.raises(StorageError, match="no message to answer"):
        store.begin_regeneration(chat.id)
    assert len(store.messages(chat.id, all_versions=True)) == 6


def test_a_finished_answer_cannot_be_overwritten(store: ChatStore) -> None:
    chat = store.create_conversation()
    answer = store.begin_exchange(chat.id, "Q").answer
    store.update_partial(answer.id, "par")
    assert store.messages(chat.id)[-1].content == "par"
    store.finish_message(answer.id, "partial", MessageState.STOPPED, reason=FinishReason.CANCELLED)
    for late in (store.update_partial, store.finish_message):
        with pytest.raises(StorageError):
            late(answer.id, "late")
    assert store.messages(chat.id)[-1].content == "partial"
    assert store.messages(chat.id)[-1].state is MessageState.STOPPED


def test_nothing_can_be_added_to_a_chat_that_is_not_there(store: ChatStore) -> None:
    for change in (
        lambda: store.add_message(99, "user", "x"),
        lambda: store.begin_exchange(99, "x"),
        lambda: store.rename(99, "x"),
        lambda: store.delete(99),
        lambda: store.conversation(99),
    ):
        with pytest.raises(StorageError, match="no longer exists"):
            change()


def test_titles_are_one_line_and_not_empty(store: ChatStore) -> None:
    chat = store.create_conversation(" two\n lines ")
    assert chat.title == "two lines"
    with pytest.raises(StorageError, match="needs a name"):
        store.rename(chat.id, " \n ")
    assert store.create_conversation("").title == "New chat"


def test_drafts_are_kept_per_chat(store: ChatStore, reopen: Callable[[], ChatStore]) -> None:
    chat = store.create_conversation()
    store.save_draft(None, "for a new chat")
    store.save_draft(chat.id, "half a sen")
    store.save_draft(chat.id, "half a sentence")
    store.save_draft(None, "for a new chat!")
    store.close()
    store = reopen()
    assert store.draft(chat.id) == "half a sentence"
    assert store.draft(None) == "for a new chat!"
    store.save_draft(chat.id, "")
    assert store.draft(chat.id) == ""


def test_lone_surrogates_are_replaced_and_pairs_joined(store: ChatStore) -> None:
    chat = store.create_conversation("a\ud800b")
    assert chat.title == "a\ufffdb"
    row = store.add_message(chat.id, "user", "\ud83d\ude00 \udc00 \x00 \u202e")
    assert store.messages(chat.id)[0].content == row.content == "😀 \ufffd \x00 \u202e"


def test_infinite_figures_do_not_break_saving(store: ChatStore) -> None:
    chat = store.create_conversation()
    answer = store.begin_exchange(chat.id, "Q").answer
    row = store.finish_message(answer.id, "A", stats=GenerationStats(tokens_per_second=float("inf")))
    assert row.stats is not None
    assert stats_from_json(row.stats).tokens_per_second == 0


def test_parameters_that_are_no_longer_legal_are_none() -> None:
    assert params_from_json({"sampling": {"temperature": -1}}) is None
    assert params_from_json({"sampling": {"temperature": "hot"}}) is None
    assert params_from_json({"max_tokens": 9, "a_later_field": 1}) == GenerationParams(max_tokens=9)


def test_the_list_is_never_behind(store: ChatStore) -> None:
    """What is kept of the last look is what a first look would find, after every kind of change."""
    first = store.create_conversation("first").id
    begun = store.begin_exchange(first, "one")
    answer = begun.answer.id
    other: list[int] = []
    changes: tuple[Callable[[], object], ...] = (
        lambda: store.finish_message(answer, "the whole"),
        lambda: store.edit_answer(answer, "put right"),
        lambda: store.show_version(answer),
        lambda: other.append(store.duplicate(first).id),
        lambda: store.rename(first, "renamed"),
        lambda: store.pin(first, True),
        lambda: store.archive(other[0], True),
        lambda: store.archive(other[0], False),
        lambda: store.restore_turn(store.delete_turn(answer)[0].id),
        lambda: store.delete(first),
        lambda: store.undelete(first),
    )
    for change in changes:
        change()
        listed = store.conversations()
        store._listed = SummaryCache()
        assert listed == store.conversations()
