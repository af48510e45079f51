"""The chat list as a Qt model: pinned chats first, then the latest change; titles editable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt, Signal

from app.i18n import tr
from app.storage import Summary
from app.storage.search_query import spans
from app.widgets.literal import as_tip

_MARKS = re.compile(r"[*_`#]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")  # Markdown's, which say nothing in a preview
Index = QModelIndex | QPersistentModelIndex


class ChatListModel(QAbstractListModel):
    """Rows of `Summary`. Renaming is asked for by `rename_requested`; the list changes when it is done."""

    rename_requested = Signal(int, str)  # conversation id, new title

    PREVIEW = Qt.ItemDataRole.UserRole
    ID = Qt.ItemDataRole.UserRole + 1
    PLACE = Qt.ItemDataRole.UserRole + 2  # the message that a search found, None for no such
    MARKS = Qt.ItemDataRole.UserRole + 3  # where the sought words are in the preview: (start, length)
    CHAT = Qt.ItemDataRole.UserRole + 4  # the `Conversation`

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._chats: list[Summary] = []
        self._rows: dict[int, int] = {}  # of each chat
        self._terms: tuple[str, ...] = ()  # what was sought
        self._answering: int | None = None  # the chat in which an answer is being written

    @property
    def ids(self) -> list[int]:
        """The conversations' ids from top to bottom."""
        return [chat.conversation.id for chat in self._chats]

    def summary(self, row: int) -> Summary:
        """The chat in a row."""
        return self._chats[row]

    def row_of(self, conversation_id: int | None) -> int:
        """The row of a chat, -1 if it is not in the list."""
        return -1 if conversation_id is None else self._rows.get(conversation_id, -1)

    def set_chats(self, chats: Sequence[Summary], terms: tuple[str, ...] = ()) -> None:
        """Show another list, found by `terms`; where chats and order are the same, only texts change."""
        again, self._terms = terms != self._terms, terms
        if not again and [chat.conversation.id for chat in chats] == self.ids:
            pairs = enumerate(zip(self._chats, chats, strict=True))
            changed = [row for row, (before, now) in pairs if now is not before and now != before]
            self._chats = list(chats)
            for row in changed:
                self.dataChanged.emit(self.index(row), self.index(row))
            return
        self.beginResetModel()
        self._chats = list(chats)
        self._rows = {chat.conversation.id: row for row, chat in enumerate(self._chats)}
        self.endResetModel()

    def set_answering(self, conversation_id: int | None) -> None:
        """Mark the chat in which an answer is being written."""
        before, self._answering = self._answering, conversation_id
        for row in {self.row_of(before), self.row_of(conversation_id)} - {-1}:
            self.dataChanged.emit(self.index(row), self.index(row))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """The number of chats."""
        return 0 if parent.isValid() else len(self._chats)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Title, preview, tool tip and what a screen reader says."""
        if not index.isValid():
            return None
        chat = self._chats[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return chat.conversation.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return as_tip(chat.conversation.title)
        if role == Qt.ItemDataRole.AccessibleDescriptionRole:
            return self._spoken(chat)
        if role == self.PREVIEW:
            if chat.conversation.id == self._answering:
                return tr("Answering…")
            return _MARKS.sub("", chat.preview)
        return self._more(chat, role)

    def _more(self, chat: Summary, role: int) -> Any:
        if role == self.ID:
            return chat.conversation.id
        if role == self.PLACE:
            return chat.place
        if role == self.MARKS:
            return spans(_MARKS.sub("", chat.preview), self._terms) if chat.place is not None else []
        return chat.conversation if role == self.CHAT else None

    def _spoken(self, chat: Summary) -> str:
        """What a screen reader says after the title."""
        states = {
            tr("An answer is being written."): chat.conversation.id == self._answering,
            tr("Pinned."): chat.conversation.pinned,
            tr("Archived."): chat.conversation.archived,
        }
        return " ".join([*(text for text, holds in states.items() if holds), chat.preview])

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Every chat can be renamed in place."""
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Ask for a new title; an empty one leaves the old."""
        title = str(value).strip()
        if role != Qt.ItemDataRole.EditRole or not title or not index.isValid():
            return False
        chat = self._chats[index.row()].conversation
        if title != chat.title:
            self.rename_requested.emit(chat.id, title)
        return True
