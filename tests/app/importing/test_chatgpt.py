from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.importing.chatgpt import is_chatgpt, read_chatgpt
from app.importing.errors import UnreadableError
from app.importing.outcome import LeftOut
from app.storage import ChatStore, MessageState
from app.storage.incoming import IncomingChat, insert_chat
from tests.app.importing.chatgpt_files import START, conversation, message, simple

MOMENT = datetime.fromtimestamp(START, UTC)


def read(document: dict[str, Any]) -> tuple[IncomingChat, Counter[LeftOut]]:
    left_out: Counter[LeftOut] = Counter()
    assert is_chatgpt(document)
    return read_chatgpt(document, left_out), +left_out


def shape(chat: IncomingChat) -> list[tuple[str, int | None, bool]]:
    return [(found.content, found.parent, found.active) for found in chat.messages]


def test_a_question_and_an_answer() -> None:
    chat, left_out = read(simple(default_model_slug="gpt-4o", is_archived=True))
    assert (chat.title, chat.model, chat.archived, chat.pinned) == ("Rome", "gpt-4o", True, False)
    assert (chat.created, chat.updated) == (MOMENT, MOMENT + timedelta(seconds=60))
    assert shape(chat) == [("When was Rome founded?", None, True), ("In **753 BC**.", 0, True)]
    assert chat.messages[1].created == MOMENT + timedelta(seconds=2)
    assert [found.model for found in chat.messages] == ["", "gpt-4o"]
    assert not left_out


def test_branches_are_kept_and_the_shown_one_is_active() -> None:
    chat, _ = read(
        conversation(
            ("r", None, None),
            ("q", "r", message("user", "one")),
            ("a1", "q", message("assistant", "first answer")),
            ("q2", "a1", message("user", "more")),
            ("a2", "q", message("assistant", "second answer")),
            ("e", "r", message("user", "one, edited")),
            current_node="q2",
        )
    )
    assert shape(chat) == [
        ("one", None, True),
        ("first answer", 0, True),
        ("more", 1, True),
        ("second answer", 0, False),
        ("one, edited", None, False),
    ]


def test_an_answer_that_a_tool_divides_is_one() -> None:
    chat, left_out = read(
        conversation(
            ("q", None, message("user", "Plot it")),
            ("a", "q", message("assistant", "I will.")),
            ("c", "a", message("assistant", kind="code", content={"text": "plot()"}, recipient="python")),
            ("t", "c", message("tool", kind="execution_output", content={"text": "<plot>"})),
            ("b", "t", message("assistant", "Here it is.")),
        )
    )
    assert shape(chat) == [("Plot it", None, True), ("I will.\n\nHere it is.", 0, True)]
    assert left_out == {LeftOut.TOOLS: 2}


def test_answers_that_branch_are_not_joined() -> None:
    chat, _ = read(
        conversation(
            ("q", None, message("user", "Go")),
            ("a", "q", message("assistant", "One.")),
            ("b", "a", message("assistant", "Two.")),
            ("c", "a", message("assistant", "Three.")),
        )
    )
    assert shape(chat) == [("Go", None, True), ("One.", 0, True), ("Two.", 1, False), ("Three.", 1, True)]


PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}


def test_what_is_no_text_is_counted() -> None:
    chat, left_out = read(
        conversation(
            ("s", None, message("system", "You are a pirate.")),
            ("i", "s", message("user", kind="user_editable_context", content={"user_profile": "x"})),
            ("q", "i", message("user", PICTURE, "What is it?", kind="multimodal_text", attachments=[{}, {}])),
            ("h", "q", message("assistant", kind="thoughts", content={"thoughts": []})),
            ("a", "h", message("assistant", "A dog \ue200cite\ue202turn0search1\ue201.")),
            ("q2", "a", message("user", PICTURE, PICTURE, kind="multimodal_text")),
            (
                "v",
                "q2",
                message("user", {"content_type": "audio_transcription", "text": "And this?"}, {"x": 1}),
            ),
            ("c", "v", message("assistant", kind="code", content={"language": "python", "text": "x = 1"})),
        )
    )
    assert chat.system_prompt == "You are a pirate."
    assert [found.content for found in chat.messages] == [
        "What is it?",
        "A dog .",
        "[picture, not imported]",
        "And this?",
        "```python\nx = 1\n```",
    ]
    assert left_out == {
        LeftOut.PICTURES: 3,
        LeftOut.FILES: 1,
        LeftOut.HIDDEN: 1,
        LeftOut.REASONING: 1,
        LeftOut.OTHER: 1,
    }


def test_odd_times_are_replaced_by_what_is_near() -> None:
    chat, _ = read(
        conversation(
            ("q", None, message("user", "one", time=float("1e300"))),
            ("a", "q", message("assistant", "two", time=START + 5)),
            ("b", "a", message("user", "three", time="soon")),
            create_time=None,
            update_time=-5,
        )
    )
    later = MOMENT + timedelta(seconds=5)
    assert (chat.created, chat.updated) == (later, later)  # the earliest that is known
    assert [found.created for found in chat.messages] == [later] * 3


def test_an_unfinished_answer_is_interrupted() -> None:
    chat, _ = read(
        conversation(
            ("q", None, message("user", "one")),
            ("a", "q", message("assistant", "two", status="in_progress")),
        )
    )
    assert chat.messages[1].state is MessageState.INTERRUPTED


@pytest.mark.parametrize(
    "document",
    [conversation(), conversation(("r", None, None)), conversation(("s", None, message("system", "x")))],
)
def test_a_chat_without_words_is_none(document: dict[str, Any]) -> None:
    with pytest.raises(UnreadableError, match="no written messages"):
        read(document)


def test_a_very_long_chat_needs_no_deep_stack(store: ChatStore) -> None:
    nodes: list[Any] = [("0", None, message("user", "text 0"))]
    for number in range(1, 5000):
        role = "assistant" if number % 2 else "user"
        nodes.append((str(number), str(number - 1), message(role, f"text {number}")))
    chat, _ = read(conversation(*nodes))
    assert len(chat.messages) == 5000
    assert len(store.messages(insert_chat(store, chat).id)) == 5000


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def damaged(draw: Callable[..., Any]) -> dict[str, Any]:
    """An export in which anything may be anything, links included."""
    document = simple()
    names = [*document["mapping"], "nowhere"]
    for _ in range(draw(st.integers(0, 6))):
        part: Any = document
        while isinstance(part, dict) and part:
            key = draw(st.sampled_from(sorted(part)))
            if key != "mapping" and draw(st.booleans()):
                part[key] = draw(JUNK | st.sampled_from(names) | st.lists(st.sampled_from(names)))
                break
            part = part[key]
    return document


@given(damaged())
def test_damage_is_refused_or_gives_a_chat_that_can_be_saved(document: dict[str, Any]) -> None:
    from contextlib import closing
    from pathlib import Path

    from app.storage import open_in_memory

    try:
        chat, _ = read(document)
    except UnreadableError:
        return
    active = [place for place, found in enumerate(chat.messages) if found.active]
    assert [chat.messages[place].parent for place in active] == [None, *active][: len(active)]
    with closing(open_in_memory(Path("x")).store) as store:
        saved = insert_chat(store, chat)
        assert len(store.messages(saved.id, all_versions=True)) == len(chat.messages)
