"""A list of chats with a box beside each, and a field that narrows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.i18n import tr
from app.storage.rows import Conversation
from app.text import fold
from app.theme import mark
from app.widgets.buttons import push_button

_ID = Qt.ItemDataRole.UserRole
_ROWS = 11  # of the height of text, with some air


class ChatChooser(QWidget):
    """Which chats; `changed` when a box was ticked or cleared."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.filter = QLineEdit(self)
        self.filter.setPlaceholderText(tr("Show chats with these words in their title"))
        self.filter.setAccessibleName(self.filter.placeholderText())
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._narrow)
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Chats to export"))
        self.list.setUniformItemSizes(True)
        mark(self.list, boxed=True)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setMinimumHeight(self.fontMetrics().height() * _ROWS)
        self.list.itemChanged.connect(lambda _: self.changed.emit())
        self.tick = push_button(tr("Tick all shown"), lambda: self._set_shown(True), self)
        self.clear = push_button(tr("Clear all shown"), lambda: self._set_shown(False), self)
        buttons = QHBoxLayout()
        buttons.addWidget(self.tick)
        buttons.addWidget(self.clear)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.filter)
        column.addWidget(self.list, 1)
        column.addLayout(buttons)

    def set_chats(self, chats: Iterable[Conversation], ticked: Sequence[int]) -> None:
        """Fill the list; the chats of these ids are ticked."""
        self.list.blockSignals(True)
        self.list.clear()
        for chat in chats:
            item = QListWidgetItem(chat.title)
            item.setData(_ID, chat.id)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(_state(chat.id in ticked))
            self.list.addItem(item)
        self.list.blockSignals(False)
        self._narrow()
        self.changed.emit()

    def chosen(self) -> tuple[int, ...]:
        """The ids of the chats that are ticked, also those that are not shown."""
        return tuple(item.data(_ID) for item in self._items() if item.checkState() is Qt.CheckState.Checked)

    def _items(self) -> list[QListWidgetItem]:
        return [self.list.item(row) for row in range(self.list.count())]

    def _narrow(self) -> None:
        words = fold(self.filter.text()).split()
        for item in self._items():
            title = fold(item.text())
            item.setHidden(not all(word in title for word in words))

    def _set_shown(self, ticked: bool) -> None:
        self.list.blockSignals(True)
        for item in self._items():
            if not item.isHidden():
                item.setCheckState(_state(ticked))
        self.list.blockSignals(False)
        self.list.viewport().update()
        self.changed.emit()


def _state(ticked: bool) -> Qt.CheckState:
    return Qt.CheckState.Checked if ticked else Qt.CheckState.Unchecked
