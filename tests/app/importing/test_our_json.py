import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.importing.errors import UnreadableError
from app.importing.our_json import is_ours, read_ours
from app.storage import MessageState

V1 = Path(__file__).parent / "released" / "v1.json"
FORMAT_PAGE = Path(__file__).parents[3] / "docs" / "export-format.md"


@pytest.fixture
def document() -> Any:
    """The example of the format's description."""
    (example,) = re.findall(r"```json\n(.*?)```", FORMAT_PAGE.read_text("utf-8"), re.DOTALL)
    return json.loads(example)


def test_the_described_example_is_read(document: Any) -> None:
    assert is_ours(document)
    chat = read_ours(document)
    assert (chat.title, chat.system_prompt) == ("Rome", "Be brief.")
    question, answer = chat.messages
    assert (question.parent, answer.parent) == (None, 0)
    assert answer.content == "In **753 BC**, says the legend."
    assert answer.finished == chat.updated


def test_version_1_is_read() -> None:
    chat = read_ours(json.loads(V1.read_text("utf-8")))
    assert [(message.parent, message.active, message.state) for message in chat.messages] == [
        (None, True, MessageState.COMPLETE),
        (0, False, MessageState.STOPPED),
        (0, True, MessageState.COMPLETE),
        (2, True, MessageState.COMPLETE),
        (3, True, MessageState.INTERRUPTED),  # was being written
    ]
    assert chat.messages[2].content == "In 753 BC. 北京 🎻"
    assert chat.messages[2].stats is not None
    assert chat.messages[2].params is not None


def test_unknown_keys_are_ignored(document: Any) -> None:
    plain = read_ours(copy.deepcopy(document))
    document["colour"] = document["conversation"]["x"] = document["messages"][0]["y"] = [1]
    assert read_ours(document) == plain


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("version",), 3, "newer version"),
        (("version",), 0, "version"),
        (("version",), "2", "version"),
        (("conversation",), None, "the conversation is not an object"),
        (("conversation", "title"), 5, "title"),
        (("conversation", "created"), "yesterday", "created"),
        (("conversation", "created"), "2026-01-02T03:04:05", "created"),
        (("conversation", "created"), "1826-01-02T03:04:05Z", "created"),
        (("messages",), {}, "messages"),
        (("messages", 1), "text", "message 2 is not an object"),
        (("messages", 1, "content"), None, "“content” of message 2"),
        (("messages", 1, "role"), "tool", "role"),
        (("messages", 1, "state"), "odd", "state"),
        (("messages", 1, "active"), 1, "active"),
        (("messages", 1, "parent"), 2, "parent"),
        (("messages", 0, "parent"), 2, "parent"),
        (("messages", 1, "id"), 1, "id"),
        (("messages", 1, "id"), True, "id"),
        (("messages", 1, "stats"), [], "stats"),
    ],
)
def test_what_is_not_as_described_is_named(document: Any, path: Any, value: object, words: str) -> None:
    part = document
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    with pytest.raises(UnreadableError, match=words):
        read_ours(document)


def test_a_missing_key_is_named(document: Any) -> None:
    del document["messages"][1]["note"]
    with pytest.raises(UnreadableError, match="message 2 has no “note”"):
        read_ours(document)


def test_figures_of_any_form_are_kept_if_they_can_be_exported_again(document: Any) -> None:
    document["messages"][1]["stats"] = {"hits": "x", "more": [1, None, 10**30]}
    assert read_ours(document).messages[1].stats == document["messages"][1]["stats"]
    for value in ({"rate": float("inf")}, json.loads('{"a": ' * 21 + "1" + "}" * 21)):
        document["messages"][1]["stats"] = value
        with pytest.raises(UnreadableError, match="stats"):
            read_ours(document)


def test_active_messages_always_follow_each_other(document: Any) -> None:
    document["messages"][1]["parent"] = None  # as a damaged database may have it
    assert read_ours(document).messages[1].parent == 0
