import dataclasses
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.export import to_json
from app.storage import Conversation, MessageRow, MessageState
from app.storage.figures import params_from_json, stats_from_json

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=9)))


def read_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def read_back(text: str) -> tuple[Conversation, list[MessageRow]]:
    """A reader written from the module's description of the format, not from its code."""
    document = json.loads(text)
    assert (document["format"], document["version"]) == ("fiddler-chat-conversation", 1)
    head: dict[str, Any] = dict(document["conversation"])
    for key in ("created", "updated", "deleted"):
        head[key] = read_time(head[key])
    conversation = Conversation(**head)
    rows = []
    for item in document["messages"]:
        state = MessageState(item.pop("state"))
        times: dict[str, Any] = {key: read_time(item.pop(key)) for key in ("created", "finished")}
        rows.append(MessageRow(conversation_id=conversation.id, state=state, **item, **times))
    return conversation, rows


def test_the_document_holds_everything(conversation: Conversation, messages: list[MessageRow]) -> None:
    text = to_json(conversation, messages, NOW)
    assert read_back(text) == (conversation, messages)
    document = json.loads(text)
    assert document["exported"] == "2026-02-02T19:05:06.000Z"
    assert set(document["messages"][0]) == {field.name for field in dataclasses.fields(MessageRow)} - {
        "conversation_id"
    }
    answer = document["messages"][2]
    assert answer["created"] == "2026-01-02T03:04:05.678Z"
    params, stats = params_from_json(answer["params"]), stats_from_json(answer["stats"])
    assert params is not None
    assert params.sampling.top_k == 40
    assert stats.hits.counts.tolist() == [[[[0] * 4, [0] * 4]], [[[5, 1, 3, 1], [0] * 4]]]


TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
ROWS = st.builds(
    MessageRow,
    id=st.integers(1, 2**62),
    conversation_id=st.just(5),
    role=st.sampled_from(["user", "assistant", "system"]),
    content=st.text(),
    state=st.sampled_from(MessageState),
    created=TIMES,
    finished=st.none() | TIMES,
    parent=st.none() | st.integers(1, 2**62),
    active=st.booleans(),
    model=st.text(),
    reason=st.text(),
    note=st.text(),
    params=st.none() | st.dictionaries(st.text(), st.integers() | st.text() | st.none()),
    stats=st.none() | st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
)
CONVERSATIONS = st.builds(
    Conversation,
    id=st.just(5),
    title=st.text(),
    model=st.text(),
    system_prompt=st.text(),
    created=TIMES,
    updated=TIMES,
    deleted=st.none() | TIMES,
)


@given(CONVERSATIONS, st.lists(ROWS, max_size=4))
def test_nothing_is_lost(conversation: Conversation, messages: list[MessageRow]) -> None:
    assert read_back(to_json(conversation, messages, NOW)) == (conversation, messages)
