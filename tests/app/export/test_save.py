import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.export import KINDS, save_conversation
from app.export.save import JSON, MARKDOWN
from app.storage import Conversation, MessageRow
from engine.errors import FileError


def test_both_kinds_are_written_as_utf8(
    tmp_path: Path, conversation: Conversation, messages: list[MessageRow]
) -> None:
    odd = [replace(messages[0], content="北京 \ud800 🎻")]
    for kind in KINDS:
        save_conversation(tmp_path / f"x{kind.suffix}", conversation, odd, kind)
    assert "北京 \ufffd 🎻" in (tmp_path / "x.md").read_text("utf-8")
    document = json.loads((tmp_path / "x.json").read_bytes())
    assert document["messages"][0]["content"] == "北京 \ufffd 🎻"


def test_the_dialog_offers_the_suffix() -> None:
    assert MARKDOWN.filter == "Markdown (*.md)"
    assert JSON.filter.endswith("(*.json)")


def test_what_cannot_be_written_says_why(
    tmp_path: Path, conversation: Conversation, messages: list[MessageRow]
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError) as caught:
        save_conversation(tmp_path / "file" / "x.md", conversation, messages)
    assert caught.value.why
    assert caught.value.action
