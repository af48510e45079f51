"""How attached files stand in a message's text, for the model and on the disk alike. Pure.

    Attached file: notes.txt
    ```txt
    what is in the file
    ```

    What was typed about it.

A message with files is one text: the files first, each under a line with its name and in a fence that is
longer than any run of backticks in it, an empty line, and then what was typed. The model reads exactly what
is saved, so answering, editing and copying a message later give the same prompt; searches find names and
contents; exports, imports and databases know nothing about files and still keep them. The files stand
before the question: who asks another question about them has them read only once.

The form is not translated. A text that somebody types in exactly this form is a file, too: nothing changes
but how it is shown, for `compose` gives back every text that `parse` has taken apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

from app.text import one_line

HEAD = "Attached file: "  # how every message with files begins
_HEAD = re.compile(HEAD + r"([^\n]+)\n(`{3,})[^`\n]*\n")
_TICKS = re.compile(r"`+")
_LANGUAGE = re.compile(r"\.([a-z0-9+#-]{1,16})")
BETWEEN = "\n\n"


@dataclass(frozen=True)
class Attachment:
    """A text with the name of the file that it comes from (one line, no folder)."""

    name: str
    content: str

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return self.content.count("\n") + 1

    @cached_property
    def block(self) -> str:
        """How it stands in a message."""
        longest = max((len(run) for run in _TICKS.findall(self.content)), default=0)
        fence = "`" * max(3, longest + 1)
        return f"{HEAD}{self.name}\n{fence}{self.language}\n{self.content}\n{fence}"

    @property
    def language(self) -> str:
        """What the name's ending says about the language, for highlighting; empty for nothing."""
        found = _LANGUAGE.fullmatch(PurePath(self.name).suffix.lower())
        return found[1] if found else ""


@dataclass(frozen=True)
class Parts:
    """A message taken apart: its files, and what was typed."""

    attachments: tuple[Attachment, ...] = ()
    text: str = ""

    @property
    def headline(self) -> str:
        """What stands for the message on one line: what was typed, or else the files' names."""
        return self.text if self.text.strip() else ", ".join(file.name for file in self.attachments)


def compose(attachments: Iterable[Attachment], text: str) -> str:
    """The message of these files and this text."""
    blocks = [file.block for file in attachments]
    return BETWEEN.join([*blocks, text] if text else blocks)


def parse(message: str) -> Parts:
    """The inverse of `compose`; a message without files is text alone."""
    files: list[Attachment] = []
    place = 0
    while (found := _block_at(message, place)) is not None:
        file, end = found
        if end == len(message):
            return Parts((*files, file), "")
        if not message.startswith(BETWEEN, end) or end + len(BETWEEN) == len(message):
            break
        files.append(file)
        place = end + len(BETWEEN)
    return Parts(tuple(files), message[place:])


def parts_of(message: str) -> tuple[str, str]:
    """The files of a message as they stand in it, and what was typed; `BETWEEN` is between the two."""
    typed = parse(message).text
    if len(typed) == len(message):
        return "", message
    return (message[: -len(typed) - len(BETWEEN)], typed) if typed else (message, "")


def merged(first: str, second: str) -> str:
    """Two messages as one: the files of both, then what was typed for one after the other."""
    if not first or not second:
        return first or second
    one, other = parse(first), parse(second)
    text = "\n".join(typed for typed in (one.text, other.text) if typed)
    return compose(with_files(one.attachments, other.attachments), text)


def with_files(files: Sequence[Attachment], more: Iterable[Attachment]) -> tuple[Attachment, ...]:
    """`files` and `more`, each file once, no two under one name."""
    kept = list(files)
    for file in more:
        if file in kept or any(_is_copy(file, other) for other in kept):
            continue
        names = {other.name for other in kept}
        kept.append(Attachment(_free_name(file.name, names), file.content))
    return tuple(kept)


def clean_name(name: str) -> str:
    """A file's name as it can stand in a message."""
    return one_line(name) or "file"


def _block_at(message: str, place: int) -> tuple[Attachment, int] | None:
    """The file that stands at a place, and where it ends; None if there is none, or not in the exact form."""
    head = _HEAD.match(message, place)
    if head is None:
        return None
    name, fence = head[1], head[2]
    end = message.find(f"\n{fence}", head.end())
    if end < 0 or name != clean_name(name):
        return None
    file = Attachment(name, message[head.end() : end])
    end += 1 + len(fence)
    return (file, end) if message[place:end] == file.block else None


def _is_copy(file: Attachment, other: Attachment) -> bool:
    """Whether it is the same file under the name that `_free_name` once gave it."""
    stem = PurePath(file.name).stem
    return file.content == other.content and other.name.startswith(f"{stem} (")


def _free_name(name: str, taken: set[str]) -> str:
    path, number, free = PurePath(name), 2, name
    while free in taken:
        free = f"{path.stem} ({number}){path.suffix}"
        number += 1
    return free
