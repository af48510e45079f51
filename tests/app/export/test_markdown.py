from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument

from app.export import ExportOptions, to_markdown
from app.storage import Conversation, MessageRow, MessageState

# A document measures text, for which Qt wants its application.
pytestmark = pytest.mark.usefixtures("qapp")


def blocks(markdown: str) -> list[tuple[int, str]]:
    """(heading level or 0, text) of each block, as an independent Markdown reader (Qt's) sees them."""
    document = QTextDocument()
    document.setMarkdown(markdown)
    found = []
    block = document.begin()
    while block.isValid():
        found.append((block.blockFormat().headingLevel(), block.text()))
        block = block.next()
    return found


def headings(markdown: str) -> list[str]:
    return [text for level, text in blocks(markdown) if level]


def test_a_reader_sees_the_chat(conversation: Conversation, messages: list[MessageRow]) -> None:
    shown = ExportOptions(branches=False)
    assert blocks(to_markdown(conversation, messages, shown, zone=UTC)) == [
        (1, "Rome & *Paris*"),
        (0, "With Starter_1, begun 2026-01-02 03:04."),
        (2, "System prompt"),
        (0, "Be brief."),
        (2, "You, 2026-01-02 03:04"),
        (0, "When was Rome founded?"),
        (2, "Assistant, 2026-01-02 03:04"),
        (0, "In 753 BC:"),
        (0, "print(-753)"),
        (0, "This answer was interrupted: the program ended before it did."),
        (0, "The answer reached its longest <length>."),
        (
            0,
            "120 tokens, 45.5 tokens/s, first after 0.2 s, "
            "experts: 50% on the GPU, 10% streamed, 30% on the CPU, 10% shared by both",
        ),
        (0, "temperature 0.5, top-k 40, seed 7, repetition penalty 1.1"),
    ]


def test_other_versions_stand_below_the_one_that_is_shown(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    document = blocks(to_markdown(conversation, messages, zone=UTC))
    assert [text for level, text in document if level == 2][-1].endswith("(version 2 of 2)")
    assert (3, "Assistant, 2026-01-02 03:04 (version 1 of 2)") in document
    assert document[-2:] == [(0, "Not now."), (0, "This answer was stopped.")]


def test_prompt_and_figures_can_be_left_out(conversation: Conversation, messages: list[MessageRow]) -> None:
    options = ExportOptions(system_prompt=False, settings=False, statistics=False, branches=False)
    text = to_markdown(conversation, messages, options, zone=UTC)
    assert "temperature" not in text
    assert headings(text) == ["Rome & *Paris*", "You, 2026-01-02 03:04", "Assistant, 2026-01-02 03:04"]
    assert "tokens" not in text
    assert "Be brief" not in text


@pytest.mark.parametrize(
    "content",
    [
        "```\nopen",
        "~~~~\n~~~\nopen",
        "````md\n```\nopen",
        "1. list\n   ```\n   open",
        "<!-- open",
        "<script>open",
        "text\n<?php open",
        "<![CDATA[ open",
        "<!DOCTYPE open",
        "<PRE>\nopen\n\nmore",
        "```\n<!-- in code stays\n```\n<!-- open",
        "`` ` ``` not a fence",
        "[link][",
        "| a | b |\n|---|---|\n| 1 |",
        "> quote",
        "    code",
        "open **bold",
    ],
)
def test_no_message_swallows_the_next(
    conversation: Conversation, messages: list[MessageRow], content: str
) -> None:
    odd = [replace(messages[0], content=content), replace(messages[2], content="the next one")]
    text = to_markdown(conversation, odd, zone=UTC)
    assert headings(text)[-2:] == ["You, 2026-01-02 03:04", "Assistant, 2026-01-02 03:04"]
    assert (0, "the next one") in blocks(text)


def test_code_is_left_as_it_is(conversation: Conversation, messages: list[MessageRow]) -> None:
    code = "```html\n<!-- comment -->\n<script>x</script>\n```"
    assert code in to_markdown(conversation, [replace(messages[0], content=code)])


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (MessageState.STREAMING, "still being written"),
        (MessageState.STOPPED, "was stopped"),
        (MessageState.ERROR, "ended with an error"),
    ],
)
def test_states_are_told(
    conversation: Conversation, messages: list[MessageRow], state: MessageState, words: str
) -> None:
    assert words in to_markdown(conversation, [replace(messages[2], state=state)])


PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)


@given(PRINTABLE)
def test_any_title_is_shown_as_it_is(title: str) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    chat = Conversation(1, title, "", "", moment, moment)
    assert headings(to_markdown(chat, [])) == [title]


def test_a_reader_learns_what_an_answer_was_written_without(
    conversation: Conversation, messages: list[MessageRow]
) -> None:
    markdown = to_markdown(conversation, [messages[0], replace(messages[2], seen_from=2)], zone=UTC)
    assert "Written without the earliest messages" in markdown
    assert "Written without" not in to_markdown(conversation, messages, zone=UTC)
    params = {**(messages[2].params or {}), "beams": 4}
    assert "beam search with 4 beams" in to_markdown(
        conversation, [messages[0], replace(messages[2], params=params)], zone=UTC
    )
