"""The page of the presets: which one new chats take, and the user's own."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QComboBox, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from app.chat.undo_bar import UndoBar
from app.i18n import tr
from app.preferences.page import SettingsPage
from app.presets.dialog import PresetDialog
from app.presets.files import PresetFiles
from app.presets.name_dialog import NameDialog, ask_name, ask_new_name
from app.presets.preset import ChatSetup, Preset
from app.presets.store import PresetStore
from app.presets.words import recommended, values_words
from app.settings import SettingsStore, registry
from app.theme import mark
from app.widgets.announce import announce
from app.widgets.buttons import push_button
from app.widgets.folding import ButtonRow
from app.widgets.labels import heading, hint
from engine.errors import EngineError
from engine.params import GenerationParams

_ID = Qt.ItemDataRole.UserRole
_CHARACTERS = 32  # of the default's name, that need no cutting
_ROWS = 9  # of the list, in heights of text


class AnswersPage(SettingsPage):
    """`defaults` are the model's own values, None while none is loaded."""

    def __init__(
        self,
        settings: SettingsStore,
        presets: PresetStore,
        defaults: GenerationParams | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(tr("Answers"), settings, parent)
        self._presets, self._defaults = presets, defaults
        box = self.add_option(registry.DEFAULT_PRESET, choices=self._choices())
        assert isinstance(box, QComboBox)
        self._box = box
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(_CHARACTERS)
        self.recommended = self.add_hint(recommended(defaults))
        self.list = QListWidget(self)
        self.list.setAccessibleName(tr("Presets"))
        self.list.setMinimumHeight(self.fontMetrics().height() * _ROWS)
        mark(self.list, boxed=True)
        self.values = hint(parent=self)
        self.undo = UndoBar(self)
        self.files = PresetFiles(presets, self)
        self.told = hint(parent=self)
        self.told.hide()
        self.files.told.connect(self._tell)
        self.new = push_button(tr("&New…"), self.ask_name, self)
        self.edit = push_button(tr("E&dit…"), self._edit, self)
        self.rename = push_button(tr("Rena&me…"), self.ask_new_name, self)
        self.delete = push_button(tr("De&lete"), self._delete, self)
        self.take = push_button(tr("&Import…"), self.files.ask_import, self)
        self.give = push_button(tr("E&xport…"), self._export, self)
        self._lay_out()
        self.list.currentItemChanged.connect(lambda *_: self._show_current())
        self.list.itemActivated.connect(lambda _: self._edit())
        self._unsubscribers.append(presets.subscribe(self._refresh))
        self.follow_settings(self._show_default)
        self._refresh()

    def _lay_out(self) -> None:
        column = QVBoxLayout()
        column.setContentsMargins(10, 10, 0, 0)  # in line with the rows above
        column.setSpacing(8)
        column.addWidget(heading(tr("Presets"), self))
        column.addWidget(hint(tr("What a chat has is changed with the button above the chat."), self))
        column.addWidget(self.list, 1)
        column.addWidget(self.values)
        for buttons in ((self.new, self.edit, self.rename, self.delete), (self.take, self.give)):
            column.addWidget(ButtonRow(buttons, self))
        column.addWidget(self.told)
        column.addWidget(self.undo)
        self.content.addLayout(column, 1)
        words = tr("temperature top-k top-p min-p repetition seed length beams context overflow persona")
        self.add_place("presets", tr("Presets"), words, self.list, self.list)

    def ask_name(self) -> NameDialog:
        """Begin a preset, with the chosen one's values."""
        values = self._current or self._presets.default

        def save(name: str) -> None:
            setup = ChatSetup("", values.system_prompt, values.parameters)
            self._select(self._presets.add(name, setup).id)

        return ask_name(tr("New preset"), save, self)

    def ask_new_name(self) -> NameDialog | None:
        """Give the chosen preset another name."""
        return ask_new_name(self._presets, self._current, self)

    @property
    def _current(self) -> Preset | None:
        item = self.list.currentItem()
        return None if item is None else self._presets.find(item.data(_ID))

    def _edit(self) -> None:
        preset = self._current
        if preset is None or preset.shipped:
            return
        dialog = PresetDialog(
            preset, lambda setup: self._presets.change(preset.id, setup), self._defaults, self
        )
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _delete(self) -> None:
        preset = self._current
        if preset is None or preset.shipped:
            return
        self._try(lambda: self._presets.delete(preset.id))
        if self._presets.find(preset.id) is None:
            text = tr("Deleted the preset “{name}”. Chats keep its values.", name=preset.name)
            self.undo.offer(text, lambda: self._try(lambda: self._presets.restore(preset)))

    def _export(self) -> None:
        self.files.ask_export(self._presets.own)

    def _try(self, change: Callable[[], object]) -> None:
        try:
            change()
        except EngineError as error:
            self.trouble.emit(error)

    def _choices(self) -> list[tuple[str, str]]:
        return [(preset.id, preset.label) for preset in self._presets.all]

    def _refresh(self) -> None:
        current = self._current
        self._box.blockSignals(True)
        self._box.clear()
        for value, label in self._choices():
            self._box.addItem(label, value)
        self._box.blockSignals(False)
        self.list.blockSignals(True)
        self.list.clear()
        for preset in self._presets.all:
            text = preset.label if preset.shipped else tr("{name} (yours)", name=preset.label)
            item = QListWidgetItem(text, self.list)
            item.setData(_ID, preset.id)
        self.list.blockSignals(False)
        self._select(current.id if current else self._presets.default.id)
        self._show_default()

    def _select(self, preset_id: str) -> None:
        for row in range(self.list.count()):
            if self.list.item(row).data(_ID) == preset_id:
                self.list.setCurrentRow(row)
        if self.list.currentRow() < 0:
            self.list.setCurrentRow(0)
        self._show_current()

    def _show_default(self) -> None:
        default = self._presets.default
        self._box.blockSignals(True)
        self._box.setCurrentIndex(self._box.findData(default.id))
        self._box.blockSignals(False)

    def _show_current(self) -> None:
        preset = self._current
        own = preset is not None and not preset.shipped
        for button in (self.edit, self.rename, self.delete):
            button.setEnabled(own)
        self.give.setEnabled(bool(self._presets.own))
        self.values.setText(_words(preset, self._defaults) if preset else "")

    @Slot(str)
    def _tell(self, text: str) -> None:
        self.told.setText(text)
        self.told.show()
        announce(self, text)


def _words(preset: Preset, defaults: GenerationParams | None) -> str:
    """A preset's values in a sentence."""
    text = tr(
        "{name}: {values}.", name=preset.label, values=", ".join(values_words(preset.parameters, defaults))
    )
    prompt = " ".join(preset.system_prompt.split())
    if prompt:
        short = prompt if len(prompt) <= 120 else prompt[:119].rstrip() + "…"
        text += " " + tr("System prompt: “{prompt}”", prompt=short)
    return text
