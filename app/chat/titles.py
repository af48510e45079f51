"""What a model is asked for a chat's title, and what of its answer can be one. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from app.chat.requests import TITLE_CHARACTERS, title_from, turns
from app.storage.rows import Conversation, MessageRow, MessageState
from app.text import fold, one_line
from engine.params import GenerationParams, Message, SamplingParams

# For the model, not for the user: instructions in English are understood best.
REQUEST = (
    "Write a title for this conversation: two to six words, in the language of the conversation."
    " Answer with the title alone."
)
PARAMS = GenerationParams(SamplingParams(temperature=0), max_tokens=24, stop_loops=True)
MOST_QUESTIONS = 3  # later on, the first exchange says little about the chat

_MOST_WORDS = 12
_OPENING = re.compile(r"^(?:sure|certainly|of course|okay|ok|here(?:['’]s| is| are))\b[^:：]*[:：]\s*", re.I)
_LABEL = re.compile(
    r"^(?:the\s+|chat\s+|conversation\s+)*(?:title|titel|titre|t[ií]tulo|titolo|标题|標題|タイトル|제목)\s*[:：–—-]\s*",
    re.I,
)
# A sentence about the task is no title.
_ABOUT_ITSELF = re.compile(r"^(?:this|the|our)\s+(?:chat|conversation|subject|title)\b|\btitle for\b", re.I)
_WORD = re.compile(r"\w+")
_BEGINNING = 5  # characters of a word that are looked for: “bakes” is about “baking”
_MARKS = re.compile(r"[*_`#]+(?=\S)|(?<=\S)[*_`#]+|^(?:[#>*+\-•]|\d+[.)])\s+")
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "‘": "’", "「": "」", "『": "』", "《": "》"}
_NOTHING = {"title", "titel", "untitled", "conversation", "chat", "new chat", "new conversation", "none"}


def is_wanted(conversation: Conversation, rows: Sequence[MessageRow]) -> bool:
    """Whether a chat that has just been answered still has the title of its first words."""
    questions = [row for row in rows if row.role == "user"]
    if not questions or len(questions) > MOST_QUESTIONS or rows[-1].state is not MessageState.COMPLETE:
        return False
    return conversation.title == one_line(title_from(questions[0].content))


def request(conversation: Conversation, rows: Sequence[MessageRow]) -> list[Message]:
    """The chat with the request for a title at its end.

    The whole of it, for the model has read that already and goes on from there at the user's next message.
    """
    return [*turns(conversation.system_prompt, rows), Message("user", REQUEST)]


def whole_lines(answer: str, *, cut_off: bool) -> str:
    """The answer without the line that was not written to its end."""
    return answer.rpartition("\n")[0] if cut_off else answer


def is_about(title: str, conversation: str) -> bool:
    """Whether a title takes up a word of the conversation: small models also name what nobody spoke of.

    A beginning of a word is enough, and of scripts without spaces two characters. Of a title with short words
    alone it cannot be told.
    """
    said, words = fold(conversation), _WORD.findall(fold(title))
    long = [word for word in words if len(word) > 3 or unicodedata.category(word[0]) == "Lo"]
    starts = [word[:2] if unicodedata.category(word[0]) == "Lo" else word[:_BEGINNING] for word in long]
    return not long or any(start in said for start in starts)


def clean_title(answer: str) -> str | None:
    """The title in a model's answer; None where there is none that could stand in a list."""
    lines = [line.strip() for line in answer.strip().splitlines() if line.strip()]
    if not lines:
        return None
    first = _OPENING.sub("", _MARKS.sub("", lines[0]))
    if not first or (first.endswith((":", "：")) and len(lines) > 1):  # “Sure, here is a title:” stands alone
        title = lines[1] if len(lines) > 1 else ""
    else:
        title = first
    before = ""
    while title != before:
        before = title
        title = _unquoted(_LABEL.sub("", _MARKS.sub("", one_line(title))).strip())
        if title.endswith((".", "。", ",", ";", ":")) and not title.endswith(".."):
            title = title[:-1].rstrip()
    words = len(title.split())
    if not any(character.isalnum() for character in title) or fold(title) in _NOTHING:
        return None
    if len(title) > TITLE_CHARACTERS or words > _MOST_WORDS or fold(title) in fold(REQUEST):
        return None
    if _ABOUT_ITSELF.search(title):
        return None
    return title


def _unquoted(text: str) -> str:
    """`text` without quotes around the whole of it, or without one that never closes."""
    closing = _QUOTES.get(text[:1])
    if closing is not None and (text.endswith(closing) or closing not in text[1:]):
        text = text[1:].removesuffix(closing)
    opened = {open_quote for open_quote, close in _QUOTES.items() if close == text[-1:]}
    if opened and not any(quote in text[:-1] for quote in opened):
        text = text[:-1]
    return text.strip()
