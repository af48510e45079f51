"""Several answers to one question, in the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage import ChatStore, Exchange, MessageState, open_store
from app.storage.together import OtherAnswer
from engine.events import FinishReason
from engine.params import GenerationParams, SamplingParams

PARAMS = [GenerationParams(SamplingParams(temperature=1, seed=seed)) for seed in (1, 2, 3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.sqlite3"


@pytest.fixture
def store(path: Path) -> Iterator[ChatStore]:
    opened = open_store(path).store
    yield opened
    opened.close()


def begin(store: ChatStore) -> Exchange:
    chat = store.create_conversation("Rome")
    return store.begin_exchange(chat.id, "When?", model="M", params=PARAMS[0], others=PARAMS[1:])


def versions(store: ChatStore, chat: int) -> list[tuple[str, bool, MessageState]]:
    rows = store.messages(chat, all_versions=True)
    return [(row.content, row.active, row.state) for row in rows if row.role == "assistant"]


def test_all_answers_are_begun_in_one_go_and_the_first_is_shown(store: ChatStore) -> None:
    exchange = begin(store)
    assert [row.role for row in exchange.history] == ["user"]
    assert exchange.answer.versions == (exchange.answer.id, *(row.id for row in exchange.others))
    for row, params in zip((exchange.answer, *exchange.others), PARAMS, strict=True):
        assert row.params is not None
        assert row.params["sampling"]["seed"] == params.sampling.seed
        assert (row.parent, row.model, row.state) == (exchange.history[0].id, "M", MessageState.STREAMING)
    for number, row in enumerate(exchange.others, 2):
        store.update_partial(row.id, f"part {number}")
        store.finish_message(row.id, f"answer {number}")
    store.finish_message(exchange.answer.id, "answer 1")
    chat = exchange.answer.conversation_id
    assert versions(store, chat) == [
        (f"answer {number}", number == 1, MessageState.COMPLETE) for number in (1, 2, 3)
    ]
    shown = store.show_version(exchange.others[1].id)
    assert shown[-1].content == "answer 3"
    following = store.begin_exchange(chat, "And Paris?")
    assert following.history[-2].content == "answer 3"


@pytest.mark.parametrize("begin_again", ["regeneration", "other answer", "edited"])
def test_every_way_to_ask_can_have_several_answers(store: ChatStore, begin_again: str) -> None:
    exchange = begin(store)
    for row in (exchange.answer, *exchange.others):
        store.finish_message(row.id, "x")
    chat = exchange.answer.conversation_id
    if begin_again == "regeneration":
        again = store.begin_regeneration(chat, params=PARAMS[0], others=PARAMS[1:])
    elif begin_again == "other answer":
        again = store.begin_other_answer(exchange.answer.id, params=PARAMS[0], others=PARAMS[1:])
    else:
        again = store.begin_edited(exchange.history[0].id, "Who?", params=PARAMS[0], others=PARAMS[1:])
    assert len(again.others) == 2
    assert len(again.answer.versions) == (3 if begin_again == "edited" else 6)
    assert [row.active for row in again.others] == [False, False]


def test_after_a_crash_what_has_words_is_there_and_the_rest_is_gone(path: Path, store: ChatStore) -> None:
    exchange = begin(store)
    store.update_partial(exchange.others[0].id, "In 7")
    store._run.release()  # the program has died
    again = open_store(path)
    assert [row.content for row in again.interrupted] == ["", "In 7"]
    assert versions(again.store, exchange.answer.conversation_id) == [
        ("", True, MessageState.INTERRUPTED),
        ("In 7", False, MessageState.INTERRUPTED),
    ]
    again.store.close()


def test_a_version_without_a_word_stays_where_something_followed_it(path: Path, store: ChatStore) -> None:
    exchange = begin(store)
    chat = exchange.answer.conversation_id
    question = exchange.history[-1].id
    later = store.add_message(chat, "user", "And then?")
    store.begin_edited(question, "Another question")
    store._run.release()  # the program has died
    again = open_store(path)
    rows = again.store.show_version(later.id)
    assert [row.id for row in rows] == [question, exchange.answer.id, later.id]
    again.store.close()


def test_what_a_search_has_found_stands_beside_its_best(store: ChatStore) -> None:
    chat = store.create_conversation("Rome")
    exchange = store.begin_exchange(chat.id, "When?", params=PARAMS[0])
    store.save_seen_from(exchange.answer.id, exchange.history[0].id)
    store.finish_message(exchange.answer.id, "best")
    found = [OtherAnswer("second", FinishReason.EOS, "a note"), OtherAnswer("third", FinishReason.LENGTH)]
    assert store.add_other_answers(exchange.answer.id, found) == chat.id
    rows = store.messages(chat.id, all_versions=True)
    assert [(row.content, row.active, row.reason, row.note) for row in rows[2:]] == [
        ("second", False, "eos", "a note"),
        ("third", False, "length", ""),
    ]
    assert [row.seen_from for row in rows[1:]] == [exchange.history[0].id] * 3


def test_only_empty_versions_that_are_not_shown_are_dropped(store: ChatStore) -> None:
    exchange = begin(store)
    empty, written = exchange.others
    store.finish_message(written.id, "words")
    for row in (exchange.answer, written, empty):
        store.drop_empty_version(row.id)
    left = store.messages(exchange.answer.conversation_id, all_versions=True)
    assert [row.id for row in left[1:]] == [exchange.answer.id, written.id]
