"""Write an exported conversation to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.export.json_format import to_json
from app.export.markdown import to_markdown
from app.i18n import tr, tr_noop
from app.storage.rows import Conversation, MessageRow
from engine.files import write_atomically
from engine.text import clean_text


@dataclass(frozen=True)
class ExportKind:
    """A format that a conversation can be exported to, as a file dialog shows it."""

    suffix: str
    label_text: str

    @property
    def filter(self) -> str:
        """The entry of the dialog's list of formats."""
        return f"{tr(self.label_text)} (*{self.suffix})"


MARKDOWN = ExportKind(".md", tr_noop("Markdown"))
JSON = ExportKind(".json", tr_noop("JSON, with everything that is saved"))
KINDS = (MARKDOWN, JSON)


def save_conversation(
    path: Path, conversation: Conversation, messages: Sequence[MessageRow], kind: ExportKind = MARKDOWN
) -> None:
    """Write the conversation to `path`, which is replaced if it exists. Raises `FileError`.

    Pass `messages` with all versions for a JSON export that holds everything.
    """
    if kind is JSON:
        text = to_json(conversation, messages, datetime.now(UTC))
    else:
        text = to_markdown(conversation, messages)
    write_atomically(path, clean_text(text))
