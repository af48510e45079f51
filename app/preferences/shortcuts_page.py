"""The page of the keys: every command with its own, to be searched and changed."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Qt, QTimer, Slot
from PySide6.QtWidgets import QHeaderView, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from app.focus import scroll_to
from app.i18n import tr
from app.preferences.page import SettingsPage
from app.settings import SettingsStore
from app.shortcuts.book import Entry, Fault, shown
from app.shortcuts.key_button import KeyButton
from app.shortcuts.shortcuts import Shortcuts
from app.shortcuts.words import explain
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.folding import ButtonRow
from app.widgets.labels import TextLabel
from engine.errors import EngineError

_NAME = Qt.ItemDataRole.UserRole


class ShortcutsPage(SettingsPage):
    """The list, and below it what can be done with the chosen line."""

    def __init__(self, settings: SettingsStore, shortcuts: Shortcuts, parent: QWidget | None = None) -> None:
        super().__init__(tr("Shortcuts"), settings, parent)
        self._shortcuts = shortcuts
        self._wanted: tuple[str, str, str] | None = None  # command, keys, the command that has them
        self.change = KeyButton(self)
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(tr("Search by command or keys"))
        self.search.setAccessibleName(tr("Search the shortcuts"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.list = QTreeWidget(self)
        self.list.setAccessibleName(tr("Commands and their keys"))
        self.list.setHeaderLabels([tr("Command"), tr("Keys")])
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setAllColumnsShowFocus(True)
        self.list.setMinimumHeight(self.fontMetrics().height() * 14)
        self.list.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.list.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.list.header().setStretchLastSection(False)
        self.list.currentItemChanged.connect(self._on_current)
        self.list.itemActivated.connect(self._on_activated)
        self.change.pressed_keys.connect(self._on_keys)
        self.change.waiting_changed.connect(self._on_waiting)
        self.remove = push_button(tr("&Remove"), self._remove, self)
        self.reset = push_button(tr("Re&store"), self._reset, self)
        self.reset_all = push_button(tr("Restore &all"), self._reset_all, self)
        self.message = TextLabel(parent=self)
        self.message.hide()
        self.take = push_button(tr("&Use them here instead"), self._take, self)
        self.take.hide()
        self._lay_out()
        shortcuts.changed.connect(self._fill)
        self._unsubscribers.append(lambda: shortcuts.changed.disconnect(self._fill))
        self._fill()

    def _lay_out(self) -> None:
        text = tr("Choose a command, press “Change”, then the keys it is to have. Fixed keys cannot change.")
        self.content.setSpacing(10)
        self.add_hint(text)
        self.content.addWidget(self.search)
        self.content.addWidget(self.list, 1)
        self.content.addWidget(self.message)
        self.content.addWidget(self.take, 0, Qt.AlignmentFlag.AlignLeft)
        self.content.addWidget(ButtonRow((self.change, self.remove, self.reset, self.reset_all), self))
        words = tr("keys keyboard hotkeys accelerators bindings commands change")
        self.add_place("shortcuts", tr("Keyboard shortcuts"), words, self.list, self.search)

    @property
    def entry(self) -> Entry | None:
        """The line that is chosen."""
        item = self.list.currentItem()
        return None if item is None else item.data(0, _NAME)

    def choose(self, name: str) -> None:
        """Choose the line of a command."""
        for item in self._items():
            if item.data(0, _NAME).name == name:
                self.list.setCurrentItem(item)

    @Slot()
    def _fill(self) -> None:
        """List the keys as they are; the chosen line stays so."""
        item = self.list.currentItem()
        row = self.list.indexOfTopLevelItem(item) if item is not None else 0
        self.list.clear()
        for entry in self._shortcuts.entries():
            item = QTreeWidgetItem(self.list, [f"{entry.group} · {entry.text}", shown(entry.keys)])
            item.setData(0, _NAME, entry)
            words = [entry.text, shown(entry.keys) or tr("no keys")]
            if entry.fixed:
                item.setForeground(0, self.palette().placeholderText())
                item.setForeground(1, self.palette().placeholderText())
                item.setText(1, tr("{keys} (fixed)", keys=shown(entry.keys)))
                words.append(tr("cannot be changed"))
            elif entry.changed:
                font = item.font(1)
                font.setBold(True)
                item.setFont(1, font)
                words.append(tr("changed"))
                item.setText(1, tr("{keys} (changed)", keys=shown(entry.keys) or tr("none")))
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, ", ".join(words))
        self._set_current(self._items()[row])
        self._filter(self.search.text())

    def _items(self) -> list[QTreeWidgetItem]:
        items = (self.list.topLevelItem(row) for row in range(self.list.topLevelItemCount()))
        return [item for item in items if item is not None]

    def _set_current(self, item: QTreeWidgetItem | None) -> None:
        if item is None:
            self.list.setCurrentIndex(QModelIndex())
        else:
            self.list.setCurrentItem(item)

    @Slot(str)
    def _filter(self, text: str) -> None:
        sought = text.casefold().split()
        for item in self._items():
            words = f"{item.text(0)} {item.text(1)}".casefold()
            item.setHidden(not all(part in words for part in sought))
        current = self.list.currentItem()
        if current is None or current.isHidden():
            seen = [item for item in self._items() if not item.isHidden()]
            self._set_current(seen[0] if seen else None)
        self._show_buttons()

    @Slot()
    def _on_current(self) -> None:
        self._say("")
        self._show_buttons()

    @Slot()
    def _on_activated(self) -> None:
        if self.change.isEnabled():
            self.change.wait()

    def _show_buttons(self) -> None:
        entry = self.entry
        changeable = entry is not None and not entry.fixed
        self.change.setEnabled(changeable)
        self.remove.setEnabled(changeable and bool(entry and entry.keys))
        self.reset.setEnabled(changeable and bool(entry and entry.changed))
        self.reset_all.setEnabled(any(item.data(0, _NAME).changed for item in self._items()))

    @Slot(bool)
    def _on_waiting(self, waiting: bool) -> None:
        self._say(tr("Press the new keys, or Escape to leave them as they are.") if waiting else "")

    @Slot(str)
    def _on_keys(self, keys: str) -> None:
        entry = self.entry
        if entry is None:
            return
        against = self._shortcuts.objection(entry.name, keys)
        if against is None:
            self._try(lambda: self._shortcuts.give(entry.name, keys))
            return
        self._say(explain(against, keys), trouble=True)
        if against.fault is Fault.TAKEN and against.owner is not None:
            self._wanted = entry.name, keys, against.owner.name
            self.take.show()
            self.take.setFocus(Qt.FocusReason.OtherFocusReason)
            QTimer.singleShot(0, self, lambda: scroll_to(self.take))  # once it has its place

    def _take(self) -> None:
        if self._wanted is not None:
            name, keys, owner = self._wanted
            self._try(lambda: self._shortcuts.give(name, keys, taken_from=owner))
            self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _remove(self) -> None:
        if self.entry is not None:
            name = self.entry.name
            self._try(lambda: self._shortcuts.give(name, ""))

    def _reset(self) -> None:
        if self.entry is not None:
            name = self.entry.name
            self._try(lambda: self._shortcuts.reset(name))

    def _reset_all(self) -> None:
        self._try(self._shortcuts.reset)

    def _try(self, change: Callable[[], None]) -> None:
        self._say("")
        try:
            change()
        except EngineError as error:
            self.trouble.emit(error)

    def _say(self, text: str, *, trouble: bool = False) -> None:
        self._wanted = None
        self.take.hide()
        self.message.setText(text)
        self.message.setVisible(bool(text))
        mark(self.message, tone="error" if trouble else "", muted=not trouble)
