"""What of a conversation goes into a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.storage.rows import MessageRow


@dataclass(frozen=True)
class ExportOptions:
    """The parts that can be left out. `settings` are an answer's sampling values, `statistics` its figures.

    `branches` are the versions that are not shown in the chat: earlier answers, questions that were edited.
    """

    system_prompt: bool = True
    settings: bool = True
    statistics: bool = True
    branches: bool = True

    def chosen(self, messages: Iterable[MessageRow]) -> list[MessageRow]:
        """Those of `messages` that are exported."""
        return [message for message in messages if self.branches or message.active]
