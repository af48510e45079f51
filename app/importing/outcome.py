"""What reading a file gave, before anything is saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.storage.incoming import IncomingChat


@dataclass(frozen=True)
class ReadChat:
    """One chat, and how often which kind of thing in it could not be taken over."""

    chat: IncomingChat
    left_out: Mapping[str, int] = field(default_factory=dict)
