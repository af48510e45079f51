"""The window of a chat's parameters, and the one in which a preset is edited."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.chat.undo_bar import UndoBar
from app.dialogs import confirm, show_error
from app.i18n import tr
from app.presets.bar import PresetBar
from app.presets.form import ParametersForm
from app.presets.preset import ChatSetup, Preset, replaces_own, take_preset
from app.presets.store import PresetStore
from app.presets.words import recommended
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.frames import scrolling, separator
from app.widgets.labels import hint
from app.widgets.laid_out import LaidOutDialog
from engine.errors import EngineError
from engine.params import GenerationParams


class SetupDialog(LaidOutDialog):
    """A form with a button that uses it. What was changed is not thrown away without a question."""

    def __init__(
        self,
        title: str,
        use: str,
        setup: ChatSetup,
        defaults: GenerationParams | None,
        parent: QWidget | None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.form = ParametersForm(defaults, self)
        self.form.show_setup(setup)
        self._before = self.form.setup
        self.use = push_button(use, self.accept, self, primary=True)
        self.use.setDefault(True)
        self.cancel = push_button(tr("Cancel"), self.reject, self)
        self.undo = UndoBar(self)
        mark(self.undo, shelf=True)
        self.head = QVBoxLayout()
        self.head.setContentsMargins(24, 18, 24, 12)
        self.head.setSpacing(8)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(24, 12, 24, 16)
        buttons.setSpacing(8)
        buttons.addWidget(hint(recommended(defaults), self), 1)
        buttons.addSpacing(12)
        buttons.addWidget(self.use)
        buttons.addWidget(self.cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self.head)
        column.addWidget(scrolling(self.form), 1)
        column.addWidget(self.undo)
        column.addWidget(separator(self))
        column.addLayout(buttons)
        unit = self.fontMetrics().height()
        room = self.screen().availableSize()
        self.setMinimumSize(min(unit * 32, room.width()), min(unit * 20, room.height()))
        self.resize(min(unit * 42, room.width()), min(unit * 44, round(room.height() * 0.92)))

    def accept(self) -> None:
        """Use the values, if they can be used."""
        if self.form.fault:
            self.form.seed.setFocus()
            return
        if self.take(self.form.setup):
            super().accept()

    def take(self, setup: ChatSetup) -> bool:
        """Use these values; whether it could be done."""
        raise NotImplementedError

    def reject(self) -> None:
        """Close; ask first if something was changed."""
        if self.form.setup == self._before:
            super().reject()
            return
        confirm(
            self,
            tr("Throw the changes away?"),
            tr("The chat goes on as before, and what you typed here is lost."),
            tr("Throw away"),
            super().reject,
            cancel=tr("Keep editing"),
        )


class ParametersDialog(SetupDialog):
    """The parameters of one chat. `applied` carries its new ChatSetup."""

    applied = Signal(object)

    def __init__(
        self,
        store: PresetStore,
        setup: ChatSetup,
        defaults: GenerationParams | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(tr("Parameters of this chat"), tr("&Use for this chat"), setup, defaults, parent)
        self._store = store
        self.bar = PresetBar(store, lambda: self.form.setup, self.undo, self)
        self.told = hint(tr("Changes apply to this chat alone, from the next answer on."), self)
        self.head.addWidget(self.bar)
        self.head.addWidget(self.told)
        self.bar.chosen.connect(self._choose)
        self.bar.kept.connect(self._keep)
        self.bar.files.told.connect(self.told.setText)
        self.form.changed.connect(self.bar.refresh)
        self.bar.box.setFocus()

    def take(self, setup: ChatSetup) -> bool:
        """Tell the chat."""
        self.applied.emit(setup)
        return True

    @Slot(object)
    def _choose(self, preset: Preset) -> None:
        setup, before = self.form.setup, self._store.find(self.form.setup.preset)
        taken = take_preset(setup, before, preset)
        self._show(taken)
        if replaces_own(setup, before, taken):
            done = tr("Took the values of “{name}” in place of yours.", name=preset.label)
            self.undo.offer(done, lambda: self._show(setup))

    def _show(self, setup: ChatSetup) -> None:
        self.form.show_setup(setup)
        self.bar.refresh()

    @Slot(object)
    def _keep(self, preset: Preset) -> None:
        """The values were saved in a preset: they are that one's now."""
        setup = self.form.setup
        self._show(ChatSetup(preset.id, setup.system_prompt, setup.parameters))


class PresetDialog(SetupDialog):
    """The values of one of the user's presets; `save` may raise an EngineError."""

    def __init__(
        self,
        preset: Preset,
        save: Callable[[ChatSetup], object],
        defaults: GenerationParams | None,
        parent: QWidget | None = None,
    ) -> None:
        setup = ChatSetup(preset.id, preset.system_prompt, preset.parameters)
        super().__init__(tr("Preset “{name}”", name=preset.label), tr("&Save"), setup, defaults, parent)
        self._save = save
        self.head.addWidget(hint(tr("Chats that were begun with this preset keep their values."), self))
        self.form.prompt.setFocus()

    def take(self, setup: ChatSetup) -> bool:
        """Save the preset."""
        try:
            self._save(setup)
        except EngineError as error:
            show_error(self, error)
            return False
        return True
