"""What reading files gave, before anything is saved."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from app.storage.incoming import IncomingChat


class LeftOut(StrEnum):
    """What a chat may hold that this program does not take over."""

    PICTURES = "pictures"
    FILES = "files"
    TOOLS = "tools"
    REASONING = "reasoning"
    HIDDEN = "hidden"
    OTHER = "other"


@dataclass(frozen=True)
class Refused:
    """Something that is not a chat, or a damaged one; `why` without a full stop."""

    name: str
    why: str


@dataclass
class Contents:
    """The chats of one or more files, what in them is not taken over, and what could not be read."""

    chats: list[IncomingChat] = field(default_factory=list)
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
