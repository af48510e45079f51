"""What the panel is to show now: the answer under way, the last one, or one that was chosen; and its chat.

Nothing is computed while nobody watches: what comes is only kept.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from PySide6.QtCore import QObject, Signal

from app.i18n import tr
from app.panel.history import AnswerFigures, ChatFigures
from app.storage.rows import MessageRow
from app.widgets.background import Background
from engine.errors import EngineError
from engine.events import GenerationStats

log = logging.getLogger(__name__)


class Which(Enum):
    """Which answer the figures are of."""

    NONE = auto()
    RUNNING = auto()
    LAST = auto()
    CHOSEN = auto()


@dataclass(frozen=True)
class Shown:
    """The answer to show; `index` is its place among the chat's, None for the one under way."""

    which: Which = Which.NONE
    stats: GenerationStats | None = None
    index: int | None = None


class Feed(QObject):
    """Takes in chats and figures; `changed` says that there is something else to show."""

    changed = Signal()

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.chat = ChatFigures()
        self._chat_id: int | None = None
        self._rows: list[MessageRow] = []  # the chat's answers
        self._running: GenerationStats | None = None
        self._chosen: int | None = None  # a message's id
        self._watched = False
        self._stale = False  # the rows changed since `chat` was computed
        self._background: Background[ChatFigures] = Background(tr("Reading the figures of the chat"), self)

    @property
    def running(self) -> GenerationStats | None:
        """The figures of the answer under way."""
        return self._running

    def watch(self, watched: bool) -> None:
        """Whether somebody looks; what was missed is computed now."""
        self._watched = watched
        if watched and self._stale:
            self._summarise()
        elif not watched and self._background.busy:
            self._background.forget()
            self._stale = True

    def show_chat(self, chat_id: int | None, rows: Sequence[MessageRow]) -> None:
        """Another chat is shown, or the same with other answers."""
        self._rows = [row for row in rows if row.stats is not None]
        if chat_id != self._chat_id:
            self._chosen = None
            self.chat = ChatFigures()
        self._chat_id = chat_id
        self._summarise()

    def show_running(self, stats: GenerationStats | None) -> None:
        """Figures of the answer under way; None when there is none."""
        self._running = stats
        self._tell()

    def end_answer(self, row: MessageRow) -> None:
        """The answer under way has ended as `row` says."""
        self._running = None
        if row.conversation_id == self._chat_id and row.stats is not None:
            before = len(self._rows)
            self._rows = [*(other for other in self._rows if other.id != row.id), row]
            continued = len(self._rows) == before  # its earlier figures are no more
            if self._stale or not self._watched or self._background.busy or continued:
                self._summarise()
                return
            self.chat = self.chat.with_rows([row])
        self._tell()

    def choose(self, index: int | None) -> None:
        """Show the chat's answer at `index`; None for the present one again."""
        self._chosen = None if index is None else self.chat.answers[index].message_id
        self._tell()

    def shown(self) -> Shown:
        """What to show now."""
        index = self.chat.index_of(self._chosen)
        if index is not None:
            return Shown(Which.CHOSEN, self.chat.answers[index].stats, index)
        if self._running is not None:
            return Shown(Which.RUNNING, self._running)
        if self.chat.answers:
            last: AnswerFigures = self.chat.answers[-1]
            return Shown(Which.LAST, last.stats, len(self.chat.answers) - 1)
        return Shown()

    def _summarise(self) -> None:
        """Compute `chat` from the rows: away from the GUI thread, as a long chat's may take a while."""
        self._stale = not self._watched
        self._background.forget()
        if self._stale:
            return
        rows = tuple(self._rows)
        self._background.run(lambda: ChatFigures().with_rows(rows), self._on_summary, self._on_failed)
        self._tell()

    def _on_summary(self, chat: ChatFigures) -> None:
        self.chat = chat
        self._tell()

    def _on_failed(self, error: EngineError) -> None:
        log.warning("the chat's figures are not shown: %s", error)

    def _tell(self) -> None:
        if self._watched:
            self.changed.emit()
