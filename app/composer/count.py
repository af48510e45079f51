"""Counts the tokens of what is written and of its chat. It takes its time: not for the window's thread."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from app.attachments.form import BETWEEN, parse
from app.chat.requests import turns
from app.composer.room import Room
from app.engine_factory import TokenCounter
from app.storage.rows import MessageRow
from engine.context import room_for_answer
from engine.params import GenerationParams, Message

_KEPT = 64  # counts that are remembered, of files and chats
_STAND_IN = "x"  # for the message: templates may refuse an empty one


@dataclass(frozen=True)
class Question:
    """What is to be counted: a message (as it is saved), and the chat that it would be sent in.

    `used`: tokens of the chat where they are known, as they are while its answer is being written.
    """

    message: str
    system_prompt: str = ""
    rows: tuple[MessageRow, ...] = ()
    context: int = 0
    params: GenerationParams = field(default_factory=GenerationParams)
    used: int | None = None


@dataclass(frozen=True)
class Counted:
    """The answer: the room that there is, and the tokens of each attached file in its order."""

    message: str
    room: Room
    files: tuple[int, ...] = ()


@dataclass
class Counts:
    """Counts with one tokenizer, and remembers those of files and chats, which change seldom. Thread-safe."""

    counter: TokenCounter
    _known: OrderedDict[object, int] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def count(self, question: Question) -> Counted:
        """Raises EngineError if the model cannot chat."""
        with self._lock:
            return self._count(question)

    def _count(self, question: Question) -> Counted:
        parts = parse(question.message)
        blocks = [file.block + BETWEEN for file in parts.attachments]
        if blocks and not parts.text:
            blocks[-1] = blocks[-1].removesuffix(BETWEEN)
        files = tuple(self._text(block) for block in blocks)
        message = sum(files) + (self.counter.count_tokens(parts.text) if parts.text else 0)
        frame = self._around(question.system_prompt, ())
        if question.used is not None:
            chat = max(0, question.used - frame)
        else:
            chat = max(0, self._around(question.system_prompt, question.rows) - frame)
        reserve = room_for_answer(question.params, question.context)
        room = Room(message, chat, frame, question.context, question.params.overflow, reserve)
        return Counted(question.message, room, files)

    def _text(self, text: str) -> int:
        known = self._recall(text)
        return known if known is not None else self._remember(text, self.counter.count_tokens(text))

    def _around(self, system_prompt: str, rows: Sequence[MessageRow]) -> int:
        """Tokens of a chat with a message at its end, without those of the message itself."""
        key = (system_prompt, *((row.id, row.state, len(row.content)) for row in rows))
        known = self._recall(key)
        if known is not None:
            return known
        messages = turns(system_prompt, rows)
        if messages and messages[-1].role == "user":
            messages.pop()  # nothing was answered: the next message takes its place
        whole = self.counter.count_prompt([*messages, Message("user", _STAND_IN)])
        return self._remember(key, max(0, whole - self.counter.count_tokens(_STAND_IN)))

    def _recall(self, key: object) -> int | None:
        if key not in self._known:
            return None
        self._known.move_to_end(key)
        return self._known[key]

    def _remember(self, key: object, count: int) -> int:
        self._known[key] = count
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return count
