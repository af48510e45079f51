import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from app.export import ExportOptions, to_json
from app.storage import Conversation, MessageRow, MessageState

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=9)))


def test_the_document_holds_everything(conversation: Conversation, messages: list[MessageRow]) -> None:
    document = json.loads(to_json(conversation, messages, NOW))
    assert (document["format"], document["version"]) == ("fiddler-chat-conversation", 2)
    assert document["exported"] == "2026-02-02T19:05:06.000Z"
    assert document["includes"] == {
        "system_prompt": True,
        "settings": True,
        "statistics": True,
        "branches": True,
    }
    assert document["conversation"] == {
        "title": "Rome & *Paris*",
        "model": "Starter_1",
        "system_prompt": "Be brief.",
        "created": "2026-01-02T03:04:05.678Z",
        "updated": "2026-01-02T03:09:05.678Z",
        "pinned": False,
        "archived": False,
        "parameters": None,
    }
    question, other, answer = document["messages"]
    assert [(item["id"], item["parent"], item["active"]) for item in (question, other, answer)] == [
        (1, None, True),
        (2, 1, False),
        (3, 1, True),
    ]
    assert answer["created"] == "2026-01-02T03:04:05.678Z"
    assert answer["params"]["sampling"]["top_k"] == 40
    assert answer["stats"]["hits"] == [[[[0] * 4, [0] * 4]], [[[5, 1, 3, 1], [0] * 4]]]
    assert question["stats"] is None
    assert [item["seen_from"] for item in (question, other, answer)] == [None, None, None]


def test_where_an_answer_begins_to_see_is_a_number_of_the_file(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    chat = replace(conversation, parameters={"preset": "long"})
    rows = [messages[0], messages[1], replace(messages[2], seen_from=messages[0].id)]
    document = json.loads(to_json(chat, rows, NOW))
    assert document["messages"][2]["seen_from"] == 1
    assert document["conversation"]["parameters"] == {"preset": "long"}


def test_parts_can_be_left_out(conversation: Conversation, messages: list[MessageRow]) -> None:
    options = ExportOptions(system_prompt=False, settings=False, statistics=False, branches=False)
    document = json.loads(to_json(conversation, messages, NOW, options))
    assert not any(document["includes"].values())
    assert document["conversation"]["system_prompt"] == ""
    question, answer = document["messages"]
    assert (question["id"], answer["id"], answer["parent"]) == (1, 2, 1)
    assert answer["params"] is answer["stats"] is None


def test_an_answer_under_way_is_one_that_was_cut_off(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    row = replace(messages[0], role="assistant", state=MessageState.STREAMING, created=NOW.astimezone(UTC))
    (item,) = json.loads(to_json(conversation, [row], NOW))["messages"]
    assert item["state"] == "interrupted"
