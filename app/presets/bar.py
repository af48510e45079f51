"""The line above the parameters: which preset, and what can be done with presets."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QMenu, QPushButton, QWidget

from app.chat.undo_bar import UndoBar
from app.dialogs import show_error
from app.i18n import tr
from app.presets.files import PresetFiles
from app.presets.name_dialog import NameDialog, ask_name, ask_new_name
from app.presets.preset import ChatSetup, Preset, is_as_preset
from app.presets.store import PresetStore
from app.widgets.buttons import pop_up_below, push_button
from app.widgets.literal import as_label
from app.widgets.wheel import guard_wheel
from engine.errors import EngineError


class PresetBar(QWidget):
    """`setup` gives the values that are to be saved; `undo` is where deletions can be taken back.

    `chosen` carries the preset whose values are wanted, `kept` the one that has the values now.
    """

    chosen = Signal(object)
    kept = Signal(object)

    def __init__(
        self,
        store: PresetStore,
        setup: Callable[[], ChatSetup],
        undo: UndoBar,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._store, self._setup, self._undo = store, setup, undo
        self.files = PresetFiles(store, self)
        self.box = QComboBox(self)
        self.box.setAccessibleName(tr("Preset"))
        self.box.setMinimumWidth(self.fontMetrics().averageCharWidth() * 24)
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        guard_wheel(self.box)
        label = QLabel(tr("&Preset"), self)
        label.setBuddy(self.box)
        self.save = push_button(tr("Sa&ve as preset…"), self.ask_name, self)
        self.more = QPushButton(tr("&More"), self)
        self.more.setAutoDefault(False)
        self.more.setAccessibleName(tr("More about presets"))
        self.more.clicked.connect(lambda: pop_up_below(self.more, self.menu()))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(label)
        row.addWidget(self.box, 1)
        row.addWidget(self.save)
        row.addWidget(self.more)
        self.box.activated.connect(self._on_activated)
        unsubscribe = store.subscribe(self.refresh)
        self.destroyed.connect(unsubscribe)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show which preset the values are from, and whether they have changed since."""
        setup = self._setup()
        current = self._store.find(setup.preset)
        with QSignalBlocker(self.box):
            self.box.clear()
            if current is None:
                self.box.addItem(tr("Own values"), "")
            for preset in self._store.all:
                if preset == (self._store.own or (None,))[0]:
                    self.box.insertSeparator(self.box.count())
                changed = preset == current and not is_as_preset(setup, preset)
                name = tr("{preset}, changed", preset=preset.label) if changed else preset.label
                self.box.addItem(name, preset.id)
            self.box.setCurrentIndex(self.box.findData(current.id if current else ""))

    def menu(self) -> QMenu:
        """What else can be done."""
        menu = QMenu(self)
        menu.setAccessibleName(tr("More about presets"))
        current = self._store.find(self._setup().preset)
        own = current is not None and not current.shipped

        def add(text: str, run: Callable[[], object], *, enabled: bool = True) -> None:
            action = menu.addAction(text)
            action.setEnabled(enabled)
            action.triggered.connect(lambda: run())

        if current is not None:
            name = as_label(current.label)
            changed = not is_as_preset(self._setup(), current)
            add(tr("&Back to the values of “{name}”", name=name), self._back, enabled=changed)
            add(tr("&Keep the changes in “{name}”", name=name), self._keep, enabled=own and changed)
            default = self._store.default.id == current.id
            add(tr("Use “{name}” for &new chats", name=name), self._make_default, enabled=not default)
            menu.addSeparator()
            add(tr("&Rename…"), self.ask_new_name, enabled=own)
            add(tr("&Delete"), self._delete, enabled=own)
            menu.addSeparator()
        add(tr("&Import presets…"), self.files.ask_import)
        add(tr("&Export your presets…"), self._export, enabled=bool(self._store.own))
        return menu

    def ask_name(self) -> NameDialog:
        """Save the values as a new preset, once it has a name."""

        def save(name: str) -> None:
            self.kept.emit(self._store.add(name, self._setup()))

        return ask_name(tr("Save as preset"), save, self)

    def ask_new_name(self) -> NameDialog | None:
        """Give the chosen preset another name."""
        return ask_new_name(self._store, self._current(), self)

    def _current(self) -> Preset | None:
        return self._store.find(self._setup().preset)

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        preset = self._store.find(self.box.itemData(index) or "")
        if preset is not None:
            self.chosen.emit(preset)

    def _back(self) -> None:
        preset = self._current()
        if preset is not None:
            self.chosen.emit(preset)

    def _keep(self) -> None:
        setup = self._setup()
        self._try(lambda: self.kept.emit(self._store.change(setup.preset, setup)))

    def _make_default(self) -> None:
        self._try(lambda: self._store.set_default(self._setup().preset))

    def _delete(self) -> None:
        def delete() -> None:
            deleted = self._store.delete(self._setup().preset)
            text = tr("Deleted the preset “{name}”. Chats keep its values.", name=deleted.name)
            self._undo.offer(text, lambda: self._try(lambda: self._store.restore(deleted)))

        self._try(delete)

    def _export(self) -> None:
        self.files.ask_export(self._store.own)

    def _try(self, change: Callable[[], object]) -> None:
        try:
            change()
        except EngineError as error:
            show_error(self.window(), error)
