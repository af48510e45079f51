import json
from dataclasses import replace

import pytest

from app.export import JSON, KINDS, MARKDOWN, PDF, ExportKind, ExportOptions, content, kind_named
from app.storage import Conversation, MessageRow

pytestmark = pytest.mark.usefixtures("qapp")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not PDF], ids=lambda kind: kind.name)
def test_any_text_is_written_as_utf8(
    conversation: Conversation, messages: list[MessageRow], kind: ExportKind
) -> None:
    odd = [replace(messages[0], content="北京 \ud800 🎻")]
    assert "北京 \ufffd 🎻" in content(conversation, odd, kind, ExportOptions()).decode("utf-8")


def test_a_pdf_takes_half_a_character(conversation: Conversation, messages: list[MessageRow]) -> None:
    odd = [replace(messages[0], content="北京 \ud800 🎻")]
    assert content(conversation, odd, PDF, ExportOptions()).startswith(b"%PDF")


def test_json_is_json(conversation: Conversation, messages: list[MessageRow]) -> None:
    options = ExportOptions(branches=False)
    assert len(json.loads(content(conversation, messages, JSON, options))["messages"]) == 2


def test_kinds_have_names_that_settings_keep() -> None:
    assert [kind_named(kind.name) for kind in KINDS] == list(KINDS)
    assert kind_named("papyrus") is MARKDOWN
    assert MARKDOWN.filter == "Markdown (*.md)"
