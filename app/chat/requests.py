"""What is sent to the engine: the turns of a conversation and its parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.attachments.form import parse
from app.storage.rows import MessageRow
from engine.params import Message

TITLE_CHARACTERS = 60

_MARKS = re.compile(r"^(?:\s+|[#>*+\-`~]+\s|\d+[.)]\s)+")  # of headings, quotes, lists and fences


@dataclass(frozen=True)
class Prompt:
    """A conversation as the engine takes it. `ids` are those of the saved messages in it, in order."""

    messages: tuple[Message, ...]
    ids: tuple[int, ...]


def prompt_of(system_prompt: str, history: Sequence[MessageRow]) -> Prompt:
    """What is sent for a chat, and which of its messages that is."""
    rows = sent_rows(history)
    messages = [row.to_message() for row in rows]
    if system_prompt.strip():
        messages.insert(0, Message("system", system_prompt))
    return Prompt(tuple(messages), tuple(row.id for row in rows))


def turns(system_prompt: str, history: Sequence[MessageRow]) -> list[Message]:
    """The conversation as the engine takes it."""
    return list(prompt_of(system_prompt, history).messages)


def sent_rows(history: Sequence[MessageRow]) -> list[MessageRow]:
    """The messages that are sent to the model: roles alternate, as chat templates demand.

    An answer that never got a word, and what the user asked for it, are left out; of several user messages
    in a row the last counts.
    """
    rows: list[MessageRow] = []
    for row in history:
        if row.role == "system":
            continue  # the conversation's own system prompt stands for it
        if not row.content.strip():
            continue
        if rows and rows[-1].role == row.role:
            rows.pop()
        rows.append(row)
    if rows and rows[0].role == "assistant":
        rows.pop(0)
    return rows


def in_common(before: Sequence[MessageRow], now: Sequence[MessageRow]) -> int:
    """How many messages at the beginning of two ways through a chat are the same, in the same state."""
    same = 0
    for old, new in zip(before, now, strict=False):
        if (old.id, old.state) != (new.id, new.state):
            break
        same += 1
    return same


def replace_last(rows: list[MessageRow], row: MessageRow) -> bool:
    """Put a message's newest state in its place, if it is the last; whether it is."""
    is_last = bool(rows) and rows[-1].id == row.id
    if is_last:
        rows[-1] = row
    return is_last


def title_from(text: str) -> str:
    """A chat's title from its first message: the first line with words, cut between words.

    A message without words of its own is named after its files.
    """
    text = parse(text).headline
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
