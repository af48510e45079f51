"""A conversation as plain text, the messages exactly as they were written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from app.export.options import ExportOptions
from app.export.outline import outline
from app.export.words import headline, origin, remarks
from app.i18n import tr
from app.storage.rows import Conversation, MessageRow

_LINE = 78
_STEP = "    "  # what branches off is moved to the right


def to_text(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    options: ExportOptions | None = None,
    *,
    zone: tzinfo | None = None,
) -> str:
    """The messages one below the other, each under a line that says whose it is."""
    chosen = options or ExportOptions()
    parts = [f"{conversation.title}\n{origin(conversation, zone)}"]
    if chosen.system_prompt and conversation.system_prompt:
        parts.append(_part(tr("System prompt"), [conversation.system_prompt], 0))
    for entry in outline(messages, branches=chosen.branches):
        said = [f"[{remark}]" for remark in remarks(entry.message, chosen)]
        content = entry.message.content.strip("\n")
        texts = ([content] if content else []) + (["\n".join(said)] if said else [])
        parts.append(_part(headline(entry, zone), texts, entry.depth))
    return "\n\n".join(parts) + "\n"


def _part(title: str, texts: list[str], depth: int) -> str:
    rule = f"--- {title} ".ljust(_LINE - len(_STEP) * depth, "-")
    lines = "\n\n".join([rule, *texts]).split("\n")
    return "\n".join(_STEP * depth + line if line else "" for line in lines)
