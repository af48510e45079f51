"""What was deleted and can still be brought back: a list in a dialog, and what is done with its entries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from app.chat.chats import ChatsController
from app.chat.turns import TurnsController
from app.dialogs import confirm
from app.i18n import tr, tr_count
from app.moments import short_moment
from app.storage import ChatStore, Summary
from app.storage.thread import StorageThread
from app.storage.trash import KEEP_DELETED, DeletedTurn
from app.widgets.buttons import push_button
from app.widgets.labels import TextLabel, hint
from app.widgets.literal import as_tip

_WIDTH, _ROWS = 100, 12  # in characters, in lines
_ENTRY = Qt.ItemDataRole.UserRole


@dataclass(frozen=True)
class Entry:
    """One line of the list: a chat, or a turn of a chat that is there."""

    what: str
    kind: str
    deleted: datetime
    chat: int
    turn: DeletedTurn | None = None


def entries(chats: list[Summary], turns: list[DeletedTurn]) -> list[Entry]:
    """All that can be brought back, the last deleted first."""
    found = [
        Entry(
            line.conversation.title,
            tr_count("Chat, {count} message", "Chat, {count} messages", line.messages),
            line.conversation.deleted,
            line.conversation.id,
        )
        for line in chats
        if line.conversation.deleted is not None
    ]
    for turn in turns:
        kind = tr("Question in “{title}”", title=turn.title)
        found.append(Entry(turn.text, kind, turn.deleted, turn.conversation_id, turn))
    return sorted(found, key=lambda entry: entry.deleted, reverse=True)


class DeletedDialog(QDialog):
    """Enter or the button restores what is selected, Delete removes it for good after a question."""

    restore_requested = Signal(object)  # list of `Entry`
    remove_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Recently deleted"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        text = tr(
            "Deleted chats, and questions with their answers, are kept for {days} days.",
            days=KEEP_DELETED.days,
        )
        self.list = QTreeWidget()
        self.list.setAccessibleName(tr("Recently deleted"))
        self.list.setHeaderLabels([tr("Text"), tr("What it is"), tr("Deleted")])
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setAllColumnsShowFocus(True)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.setMinimumHeight(self.fontMetrics().height() * _ROWS)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for section in (1, 2):
            header.setSectionResizeMode(section, QHeaderView.ResizeMode.ResizeToContents)
        self.list.itemDoubleClicked.connect(lambda *_: self._restore())
        self.list.itemSelectionChanged.connect(self._show_state)
        self.nothing = hint(tr("Nothing was deleted in this time."))
        self.restore = push_button(tr("Bring back"), self._restore, primary=True)
        self.remove = push_button(tr("Remove for good…"), self._remove)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.addButton(self.restore, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.remove, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.reject)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        self.restore.setDefault(True)  # for Enter in the list
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(12)
        column.addWidget(TextLabel(text))
        column.addWidget(self.list, 1)
        column.addWidget(self.nothing)
        column.addWidget(buttons)
        self.resize(self.fontMetrics().averageCharWidth() * _WIDTH, self.sizeHint().height())
        self.show_entries([])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete removes what is selected; the rest is Qt's."""
        if event.key() == Qt.Key.Key_Delete:
            self._remove()
        else:
            super().keyPressEvent(event)

    def show_entries(self, found: list[Entry]) -> None:
        """Fill the list."""
        self.list.clear()
        items = []
        for entry in found:
            item = QTreeWidgetItem([entry.what, entry.kind, short_moment(entry.deleted)])
            item.setToolTip(0, as_tip(entry.what))
            item.setToolTip(1, as_tip(entry.kind))
            item.setData(0, _ENTRY, entry)
            items.append(item)
        self.list.addTopLevelItems(items)
        if items:
            self.list.setCurrentItem(items[0])
        self.list.setVisible(bool(found))
        if found:
            self.list.setFocus(Qt.FocusReason.OtherFocusReason)
        self.nothing.setVisible(not found)
        self._show_state()

    def selected(self) -> list[Entry]:
        """What the buttons act on."""
        return [item.data(0, _ENTRY) for item in self.list.selectedItems()]

    def _show_state(self) -> None:
        some = bool(self.list.selectedItems())
        self.restore.setEnabled(some)
        self.remove.setEnabled(some)

    def _restore(self) -> None:
        if self.selected():
            self.restore_requested.emit(self.selected())

    def _remove(self) -> None:
        chosen = self.selected()
        if not chosen:
            return
        question = tr_count("Remove this for good?", "Remove these {count} entries for good?", len(chosen))
        consequence = tr("Their texts are overwritten on the disk. This cannot be undone.")
        confirm(
            self, question, consequence, tr("Remove for good"), partial(self.remove_requested.emit, chosen)
        )


class DeletedFlow(QObject):
    """Fills the dialog and does what it asks for."""

    def __init__(
        self, window: QWidget, storage: StorageThread, chats: ChatsController, turns: TurnsController
    ) -> None:
        super().__init__(window)
        self._window, self._storage, self._chats, self._turns = window, storage, chats, turns

    def ask(self) -> DeletedDialog:
        """Show what can be brought back."""
        dialog = DeletedDialog(self._window)
        dialog.restore_requested.connect(partial(self._restore, dialog))
        dialog.remove_requested.connect(partial(self._remove, dialog))
        self._fill(dialog)
        dialog.open()
        return dialog

    def _fill(self, dialog: DeletedDialog) -> None:
        self._storage.run(ChatStore.deleted).then(lambda found: self._show(dialog, *found))

    @staticmethod
    def _show(dialog: DeletedDialog, chats: list[Summary], turns: list[DeletedTurn]) -> None:
        if isValid(dialog):
            dialog.show_entries(entries(chats, turns))

    def _restore(self, dialog: DeletedDialog, chosen: list[Entry]) -> None:
        chats = tuple(entry.chat for entry in chosen if entry.turn is None)
        if chats:
            self._chats.undelete(chats)
        for entry in chosen:
            if entry.turn is not None:
                self._turns.restore(entry.turn)
        self._fill(dialog)

    def _remove(self, dialog: DeletedDialog, chosen: list[Entry]) -> None:
        chats = [entry.chat for entry in chosen if entry.turn is None]
        turns = [entry.turn.id for entry in chosen if entry.turn is not None]
        self._storage.run(ChatStore.remove_for_good, chats, turns)
        self._fill(dialog)
