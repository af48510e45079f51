"""The text of an answer: prose and code areas under one another, growing while it streams in."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.chat.blocks import Block, BlockKind, BlockSplitter
from app.chat.code import CodeArea
from app.chat.prose import ProseArea
from app.chat.wide_table import WideTable, is_wide_table
from app.theme import theme

Area = TypeVar("Area", ProseArea, WideTable, CodeArea)


class MessageBody(QWidget):
    """Shows Markdown. `append` may be called thirty times a second, however long the text is by then."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._splitter = BlockSplitter()
        self._areas: list[ProseArea | CodeArea] = []
        self._open_code: CodeArea | None = None
        self._open_table: WideTable | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(11)
        theme().changed.connect(self._render_again)

    @property
    def areas(self) -> list[ProseArea | CodeArea]:
        """The areas from top to bottom."""
        return list(self._areas)

    def append(self, text: str) -> None:
        """Add text to the end."""
        for block in self._splitter.feed(text):
            self._settle(block)
        tail = self._splitter.tail
        if tail is not None:
            self._show_tail(tail)

    def finish(self) -> None:
        """No more text will come: render what is left of the tail."""
        for block in self._splitter.finish():
            self._settle(block)

    def _settle(self, block: Block) -> None:
        if block.kind is BlockKind.PROSE:
            self._prose(block).add_settled(block.text)
            self._open_table = None
        else:
            streamed = self._open_code is not None
            code = self._code(block)
            code.set_code(block.text)
            if streamed:
                code.settle()
            self._open_code = None

    def _show_tail(self, tail: Block) -> None:
        if tail.kind is BlockKind.PROSE:
            self._prose(tail).set_tail(tail.text)
        else:
            self._code(tail).set_code(tail.text)

    def _prose(self, block: Block) -> ProseArea:
        last = self._areas[-1] if self._areas else None
        if is_wide_table(block.text):
            if self._open_table is None:
                self._give_up_tail(last)
                self._open_table = self._add(WideTable(self))
            return self._open_table
        if isinstance(last, WideTable) and last is self._open_table:
            self._take_away(last)  # its first line was going on as something else
            self._open_table = None
            last = self._areas[-1] if self._areas else None
        return last if type(last) is ProseArea else self._add(ProseArea(self))

    def _give_up_tail(self, area: ProseArea | CodeArea | None) -> None:
        """What looked like a paragraph so far is a table, and gets an area of its own."""
        if isinstance(area, ProseArea):
            area.drop_tail()
            if not area.blocks:
                self._take_away(area)

    def _take_away(self, area: ProseArea) -> None:
        self._areas.remove(area)
        self._layout.removeWidget(area)
        area.hide()
        area.deleteLater()

    def _code(self, block: Block) -> CodeArea:
        if self._open_code is None:
            self._open_code = self._add(CodeArea(block.language, self))
        return self._open_code

    def _add(self, area: Area) -> Area:
        self._areas.append(area)
        self._layout.addWidget(area)
        return area

    def _render_again(self) -> None:
        for area in self._areas:
            area.render_again()
