from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest

from app.attachments.form import Attachment, compose
from app.chat.requests import turns
from app.composer.count import Counts, Question
from app.storage.rows import MessageRow, MessageState
from engine.generation.tokenizer import Tokenizer
from engine.params import GenerationParams, Message, Role
from tests.engine.generation.tokenizer_folders import byte_level_folder, mistral_model_file

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@dataclass
class Words:
    """A token for each word, two around each turn; remembers what it was asked."""

    texts: list[str] = field(default_factory=list)
    prompts: list[list[Message]] = field(default_factory=list)

    def count_tokens(self, text: str) -> int:
        self.texts.append(text)
        return len(text.split())

    def count_prompt(self, messages: Sequence[Message]) -> int:
        self.prompts.append(list(messages))
        return sum(2 + len(message.content.split()) for message in messages)


def row(number: int, role: Role, content: str) -> MessageRow:
    return MessageRow(number, 1, role, content, MessageState.COMPLETE, NOW)


CHAT = (row(1, "user", "one two three"), row(2, "assistant", "four five"))


def test_message_chat_and_what_surrounds_them_are_told_apart() -> None:
    counted = Counts(Words()).count(Question("six seven", "be brief", CHAT, 100))
    room = counted.room
    assert room.message == 2
    assert room.frame == 4 + 2  # the system's turn, and that of the message
    assert room.chat == (2 + 3) + (2 + 2)
    assert room.context == 100
    assert room.reserve == 25  # a quarter: an answer may be longer than that
    assert Counts(Words()).count(Question("x", "", (), 100, GenerationParams(max_tokens=9))).room.reserve == 9


def test_the_whole_is_what_the_model_would_read() -> None:
    words = Words()
    message = compose([Attachment("a.txt", "eight nine")], "six seven")
    counted = Counts(words).count(Question(message, "be brief", CHAT, 100))
    read = [Message("system", "be brief"), *(row.to_message() for row in CHAT), Message("user", message)]
    assert counted.room.total == Words().count_prompt(read)
    assert counted.files == (len(Attachment("a.txt", "eight nine").block.split()),)


def test_a_question_without_an_answer_is_not_counted_with_the_next() -> None:
    rows = (*CHAT, row(3, "user", "never answered"))
    assert (
        Counts(Words()).count(Question("x", "", rows)).room
        == Counts(Words()).count(Question("x", "", CHAT)).room
    )


def test_only_what_is_typed_is_counted_again() -> None:
    words = Words()
    counts = Counts(words)
    file = Attachment("large.txt", "word " * 50)
    counts.count(Question(compose([file], "a"), "", CHAT, 100))
    words.texts.clear()
    words.prompts.clear()
    counts.count(Question(compose([file], "a b"), "", CHAT, 100))
    assert words.texts == ["a b"]
    assert words.prompts == []


def test_while_an_answer_is_written_the_context_is_as_full_as_the_engine_says() -> None:
    words = Words()
    room = Counts(words).count(Question("x", "be brief", (), 100, used=50)).room
    assert (room.message, room.chat + room.frame) == (1, 50)
    assert len(words.prompts) == 1  # the frame alone


@dataclass(frozen=True)
class Real:
    """A real tokenizer, as `engine.runtime.Engine` counts with it."""

    tokenizer: Tokenizer

    def count_tokens(self, text: str) -> int:
        return self.tokenizer.count(text)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return len(self.tokenizer.encode_chat(messages))


@pytest.mark.parametrize("make", [byte_level_folder, lambda path: mistral_model_file(path).parent])
def test_real_tokenizers_agree_but_for_the_joints(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    real = Real(Tokenizer.load(make(tmp_path)))
    files = [Attachment("a.py", "def f(x):\n    return x\n"), Attachment("b.md", "* 北京\n* ü")]
    for attached, typed, system in product(
        ([], files[:1], files), ("Hello, how?", "```\n1\n```"), ("", "Be.")
    ):
        message = compose(attached, typed)
        counted = Counts(real).count(Question(message, system, CHAT, 4096))
        prompt = [*turns(system, CHAT), Message("user", message)]
        joints = 1 + len(attached)  # a token may reach over the place where two texts meet
        assert abs(counted.room.total - real.count_prompt(prompt)) <= joints
