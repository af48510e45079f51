"""The words of one of ChatGPT's messages, and what in it are no words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from app.i18n import tr
from app.importing.outcome import LeftOut
from engine.text import clean_text

# Marks of citations, in characters that no font has.
_CITATION = re.compile("\ue200[^\ue201]*\ue201")
_TOOL_CONTENT = (
    "execution_output",
    "tether_browsing_display",
    "tether_quote",
    "system_error",
    "super_widget",
)
_REASONING_CONTENT = ("thoughts", "reasoning_recap")
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
_PICTURES = ("image_asset_pointer",)
_SPOKEN = ("audio_transcription",)


def words_of(message: dict[str, Any], left_out: Counter[LeftOut]) -> tuple[str, str]:
    """Who wrote a message, and the text to keep; empty where nothing is. Counts in `left_out` what is not."""
    author, metadata, content = (_object(message.get(key)) for key in ("author", "metadata", "content"))
    role = author.get("role")
    kind = content.get("content_type")
    if not isinstance(role, str):
        return "", ""
    text, pictures, others = _parts(content)
    if role == "tool" or kind in _TOOL_CONTENT or message.get("recipient") not in (None, "all"):
        left_out[LeftOut.TOOLS] += bool(text or others)
        left_out[LeftOut.PICTURES] += pictures
        return role, ""
    if kind in _REASONING_CONTENT:
        left_out[LeftOut.REASONING] += 1
        return role, ""
    if metadata.get("is_visually_hidden_from_conversation") is True or kind in _INSTRUCTIONS:
        left_out[LeftOut.HIDDEN] += bool(text or kind in _INSTRUCTIONS)
        return role, ""
    files = metadata.get("attachments")
    left_out[LeftOut.FILES] += max(0, len(files) - pictures) if isinstance(files, list) else 0
    left_out[LeftOut.PICTURES] += pictures
    left_out[LeftOut.OTHER] += others
    if not text and pictures:
        text = tr("[picture, not imported]")  # else the answer would stand there without a question
    if kind == "code" and text:
        text = f"```{_language(content)}\n{text}\n```"
    return role, text


def _parts(content: dict[str, Any]) -> tuple[str, int, int]:
    """The text, and the numbers of pictures and of other things beside it."""
    texts: list[str] = []
    pictures = others = 0
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else [content.get("text")]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            kind = part.get("content_type")
            spoken = part.get("text") if kind in _SPOKEN else None
            if isinstance(spoken, str):
                texts.append(spoken)
            elif kind in _PICTURES:
                pictures += 1
            else:
                others += 1
    words = (_CITATION.sub("", clean_text(text)).strip() for text in texts)
    return "\n\n".join(text for text in words if text), pictures, others


def _language(content: dict[str, Any]) -> str:
    language = content.get("language")
    return language if isinstance(language, str) and language.isalnum() and language != "unknown" else ""


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
