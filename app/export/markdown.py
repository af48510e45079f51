"""A conversation as Markdown: a document that reads well in any viewer, whatever the messages contain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo

from app.export.options import ExportOptions
from app.export.outline import Entry, outline
from app.export.words import headline, origin, remarks
from app.i18n import tr
from app.storage.rows import Conversation, MessageRow

_DEEPEST = 6  # of headings in Markdown
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&])")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
# What begins raw HTML that ends only at its own end mark: unclosed, it would swallow what follows.
_RAW_HTML = re.compile(r" {0,3}<(?:!--|\?|!\[CDATA\[|![A-Z]|(?:script|pre|style|textarea)\b)", re.IGNORECASE)


def to_markdown(
    conversation: Conversation,
    messages: Sequence[MessageRow],
    options: ExportOptions | None = None,
    *,
    zone: tzinfo | None = None,
) -> str:
    """The messages under headings; times in `zone` (None: the computer's own).

    Versions that the chat does not show have smaller headings, below the one that it shows.
    """
    chosen = options or ExportOptions()
    parts = [f"# {escape(conversation.title)}", f"*{escape(origin(conversation, zone))}*"]
    if chosen.system_prompt and conversation.system_prompt:
        parts += [f"## {tr('System prompt')}", contained(conversation.system_prompt)]
    for entry in outline(messages, branches=chosen.branches):
        parts += _message(entry, chosen, zone)
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """`text` so that Markdown shows it as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def contained(text: str) -> str:
    """Markdown `text` that cannot reach past its own end: open code blocks are closed, raw HTML is shown."""
    lines: list[str] = []
    fence = indent = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        elif found:
            fence, indent = found[1], line[: found.start(1)]
        elif _RAW_HTML.match(line):
            line = line.replace("<", "\\<", 1)
        lines.append(line)
    if fence:
        lines.append(indent + fence)  # indented as it was opened: perhaps inside a list
    return "\n".join(lines).strip("\n")


def _message(entry: Entry, options: ExportOptions, zone: tzinfo | None) -> list[str]:
    marks = "#" * min(2 + entry.depth, _DEEPEST)
    parts = [f"{marks} {headline(entry, zone)}"]
    if entry.message.content:
        parts.append(contained(entry.message.content))
    return parts + [f"*{escape(remark)}*" for remark in remarks(entry.message, options)]
