"""What is sent to the engine: the turns of a conversation and its parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.storage.rows import MessageRow
from engine.params import Message

TITLE_CHARACTERS = 60

_MARKS = re.compile(r"^(?:\s+|[#>*+\-`~]+\s|\d+[.)]\s)+")  # of headings, quotes, lists and fences


def turns(system_prompt: str, history: Sequence[MessageRow]) -> list[Message]:
    """The conversation as the engine takes it: roles alternate, as chat templates demand.

    An answer that never got a word, and what the user asked for it, are left out; of several user messages
    in a row the last counts.
    """
    messages: list[Message] = []
    for row in history:
        if row.role == "system":
            continue  # the conversation's own system prompt stands for it
        if not row.content.strip():
            continue
        if messages and messages[-1].role == row.role:
            messages.pop()
        messages.append(row.to_message())
    if messages and messages[0].role == "assistant":
        messages.pop(0)
    if system_prompt.strip():
        messages.insert(0, Message("system", system_prompt))
    return messages


def title_from(text: str) -> str:
    """A chat's title from its first message: the first line with words, cut between words."""
    for line in text.splitlines():
        words = _MARKS.sub("", line + " ").strip().rstrip(":,;") or line.strip()
        if words:
            break
    else:
        words = " ".join(text.split())
    if len(words) <= TITLE_CHARACTERS:
        return words
    cut = words[:TITLE_CHARACTERS]
    shorter = cut.rsplit(" ", 1)[0]
    return (shorter if len(shorter) > TITLE_CHARACTERS // 2 else cut).rstrip(" ,;:.-") + "…"
