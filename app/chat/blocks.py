"""Cuts growing Markdown into blocks that will not change any more, and the open tail. Pure text, no Qt.

A block is settled as soon as no further text can change how it reads: a paragraph at the blank line after it,
an item of a list at the next item, a code block at its closing fence. What is settled is rendered once; only
the tail is rendered again while an answer streams in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)$")
_LIST_ITEM = re.compile(r"^(?P<indent>[ \t]*)(?:[-*+]|(?P<number>\d{1,9})[.)])(?:[ \t]+|$)")


class BlockKind(StrEnum):
    """What a block is shown as."""

    PROSE = "prose"  # Markdown of one or more paragraphs, a list, a table, a heading
    CODE = "code"  # the lines between two fences


@dataclass(frozen=True)
class Block:
    """A piece of a message. `text` is Markdown source, or of a code block the code itself."""

    kind: BlockKind
    text: str
    language: str = ""


@dataclass
class _Fence:
    mark: str  # the opening fence: the closing one has the same character, at least as often
    indent: int
    language: str

    def closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return len(stripped) >= len(self.mark) and set(stripped) == {self.mark[0]}

    def may_be_closed_by(self, partial: str) -> bool:
        return set(partial.strip()) <= {self.mark[0]}

    def dedent(self, line: str) -> str:
        spaces = len(line) - len(line.lstrip(" "))
        return line[min(spaces, self.indent) :]


class BlockSplitter:
    """Takes a message in pieces of any size; the blocks do not depend on where the pieces were cut."""

    def __init__(self) -> None:
        self._lines: list[str] = []  # complete lines of the open block
        self._partial = ""  # the line that has no end yet
        self._fence: _Fence | None = None
        self._item: re.Match[str] | None = None  # how the open block begins, if it is an item of a list
        self._indent = 0  # of the code before: text behind it, in the same item of a list, has the same
        self._settled: list[Block] = []

    def feed(self, text: str) -> list[Block]:
        """Add text; return the blocks that it settled."""
        *complete, self._partial = (self._partial + text).split("\n")
        for line in complete:
            self._take(line.rstrip("\r"))
        return self._hand_out()

    def finish(self) -> list[Block]:
        """Settle what is left, at the end of the message."""
        partial, self._partial = self._partial, ""
        if partial:
            self._take(partial.rstrip("\r"))
        if self._fence is not None:
            self._settle_code()
        else:
            self._settle_prose()
        return self._hand_out()

    @property
    def tail(self) -> Block | None:
        """The open block as far as it is known; None when there is nothing to show."""
        if self._fence is not None:
            lines = list(self._lines)
            if not self._fence.may_be_closed_by(self._partial):
                lines.append(self._fence.dedent(self._partial.rstrip("\r")))
            return Block(BlockKind.CODE, "\n".join(lines), self._fence.language)
        partial = self._partial.rstrip("\r")
        start = partial.strip()
        if not partial[: self._indent].strip():
            partial = partial[self._indent :]
        if start.startswith(("```", "~~~")) or set(start) in ({"`"}, {"~"}):
            partial = ""  # perhaps the start of a fence: shown once it is known to be none
        text = "\n".join([*self._lines, partial])
        return Block(BlockKind.PROSE, text) if text.strip() else None

    def _take(self, line: str) -> None:
        if self._fence is not None:
            if self._fence.closed_by(line):
                self._settle_code()
            else:
                self._lines.append(self._fence.dedent(line))
            return
        line = self._without_indent(line)
        opening = _FENCE.match(line)
        if opening is not None:
            self._settle_prose()
            info = opening["info"].split()
            self._indent += len(opening["indent"].expandtabs(4))
            self._fence = _Fence(opening["fence"], self._indent, info[0] if info else "")
        elif not line.strip():
            self._take_blank(line)
        else:
            self._take_text(line)

    def _without_indent(self, line: str) -> str:
        """A line behind the code of a list's item, where four spaces would make it code, too."""
        if not line.strip():
            return line
        if line[: self._indent].strip():
            self._indent = 0  # the item has ended
        return line[self._indent :]

    def _take_blank(self, line: str) -> None:
        if self._item is not None:
            self._lines.append(line)  # the item may go on below
        else:
            self._settle_prose()

    def _take_text(self, line: str) -> None:
        item = _LIST_ITEM.match(line)
        if self._item is not None and self._ends_item(line, item):
            self._settle_prose()
        if not self._lines:
            self._item = item
        self._lines.append(line)

    def _ends_item(self, line: str, item: re.Match[str] | None) -> bool:
        """Whether a line is not of the open item of a list any more."""
        assert self._item is not None
        if item is None:
            after_blank = bool(self._lines) and not self._lines[-1].strip()
            return after_blank and line[:1] not in " \t"
        if len(item["indent"].expandtabs(4)) >= len(self._item[0].expandtabs(4)):
            return False  # an inner item
        before, number = self._item["number"], item["number"]
        if before is None or number is None:
            return True
        # Lists numbered 1, 1, 1 are shown as 1, 2, 3: that needs the whole list.
        return int(number) == int(before) + 1

    def _settle_prose(self) -> None:
        text = "\n".join(self._lines).rstrip()
        if text.strip():
            self._settled.append(Block(BlockKind.PROSE, text))
        self._lines, self._item = [], None

    def _settle_code(self) -> None:
        language = self._fence.language if self._fence else ""
        self._settled.append(Block(BlockKind.CODE, "\n".join(self._lines), language))
        self._lines, self._fence = [], None

    def _hand_out(self) -> list[Block]:
        settled, self._settled = self._settled, []
        return settled


def split(text: str) -> list[Block]:
    """The blocks of a whole message."""
    splitter = BlockSplitter()
    return splitter.feed(text) + splitter.finish()
