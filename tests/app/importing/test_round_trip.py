"""JSON → import → JSON is the same JSON, for any chat that the program can hold."""

import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.export import ExportOptions, to_json
from app.importing.our_json import read_ours
from app.storage import ChatStore, MessageState, open_in_memory
from app.storage.figures import params_to_json, stats_to_json
from app.storage.incoming import IncomingChat, IncomingMessage, insert_chat
from app.text import one_line
from engine.events import GenerationStats
from engine.params import GenerationParams, SamplingParams

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def as_read(value: Any) -> Any:
    """JSON knows no tuples."""
    return json.loads(json.dumps(value))


TIMES = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
UNKNOWN = st.dictionaries(
    st.text(min_size=20), st.integers(-(2**60), 2**60) | st.text() | st.none(), max_size=2
)
PARAMS = st.builds(
    lambda temperature, seed, stop, more: (
        params_to_json(GenerationParams(SamplingParams(temperature=temperature, seed=seed), stop=tuple(stop)))
        | more
    ),
    st.floats(0, 2),
    st.none() | st.integers(0, 2**62),
    st.lists(st.text(min_size=1), max_size=2),
    UNKNOWN,
)
STATS = st.builds(
    lambda tokens, rate, more: (
        as_read(stats_to_json(GenerationStats(generated_tokens=tokens, tokens_per_second=rate))) | more
    ),
    st.integers(0, 10**6),
    st.floats(0, 1e6),
    UNKNOWN,
)


@st.composite
def chats(draw: Callable[..., Any]) -> IncomingChat:
    """A tree of messages with one line of active ones in it."""
    parents: list[int | None] = []
    for place in range(draw(st.integers(0, 6))):
        parents.append(draw(st.none() | st.integers(0, place - 1)) if place else None)
    active: set[int | None] = set()
    end = draw(st.none() | st.sampled_from(range(len(parents)))) if parents else None
    while end is not None:
        active.add(end)
        end = parents[end]
    messages = [
        IncomingMessage(
            role=draw(st.sampled_from(["user", "assistant", "system"])),
            content=draw(st.text()),
            created=draw(TIMES),
            parent=parent,
            active=place in active,
            state=draw(st.sampled_from([state for state in MessageState if state != "streaming"])),
            finished=draw(st.none() | TIMES),
            model=draw(st.text()),
            reason=draw(st.text()),
            note=draw(st.text()),
            params=draw(st.none() | PARAMS),
            stats=draw(st.none() | STATS),
            seen_from=draw(st.none() | st.integers(0, place - 1)) if place else None,
        )
        for place, parent in enumerate(parents)
    ]
    title = draw(st.text().map(one_line).filter(bool))
    times, texts, flags = (draw(st.tuples(kind, kind)) for kind in (TIMES, st.text(), st.booleans()))
    return IncomingChat(title, *times, *texts, *flags, tuple(messages), draw(st.none() | PARAMS))


def exported(chat: IncomingChat, options: ExportOptions) -> str:
    with closing(open_in_memory(Path("chats.sqlite3")).store) as store:
        saved = insert_chat(store, chat)
        return to_json(saved, store.messages(saved.id, all_versions=True), NOW, options)


@given(chats())
def test_nothing_is_lost(chat: IncomingChat) -> None:
    assert read_ours(json.loads(exported(chat, ExportOptions()))) == chat


@given(chats(), st.builds(ExportOptions, st.booleans(), st.booleans(), st.booleans(), st.booleans()))
def test_an_imported_file_gives_the_same_file(chat: IncomingChat, options: ExportOptions) -> None:
    first = exported(chat, options)
    assert exported(read_ours(json.loads(first)), options) == first


def test_a_chat_as_the_program_writes_it(store: ChatStore) -> None:
    chat = store.create_conversation("Rome", "starter", "Be brief.")
    exchange = store.begin_exchange(chat.id, "When?", model="starter", params=GenerationParams())
    store.finish_message(exchange.answer.id, "In 753", MessageState.STOPPED)
    again = store.begin_regeneration(chat.id, model="starter")
    store.finish_message(again.answer.id, "In 753 BC.", stats=GenerationStats(seed=3))
    store.begin_exchange(chat.id, "And Paris?")
    text = to_json(store.conversation(chat.id), store.messages(chat.id, all_versions=True), NOW)
    read = read_ours(json.loads(text))
    assert [message.content for message in read.messages if message.active] == [
        "When?",
        "In 753 BC.",
        "And Paris?",
        "",
    ]
    assert exported(read, ExportOptions()) == text
