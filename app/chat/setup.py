"""How the chat that is shown is answered: the preset that it has taken, and its own values."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QObject, Signal

from app.i18n import tr
from app.presets.format import setup_from_json, setup_to_json
from app.presets.preset import ChatSetup, Preset, is_as_preset, setup_from
from app.presets.store import PresetStore
from app.storage import ChatStore, Conversation, StorageError
from app.storage.thread import StorageThread


class ChatParameters(QObject):
    """The values of the chat that is shown; those of a chat that is not begun are saved with it."""

    changed = Signal()  # the values, the chat, or the presets
    saved = Signal(object)  # Conversation, with the values that were changed

    def __init__(self, storage: StorageThread, presets: PresetStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._storage, self.presets = storage, presets
        self._conversation: Conversation | None = None
        self._own: ChatSetup | None = None  # None: the default preset's, whatever that is
        self._for_new: ChatSetup | None = None  # of the chat that is not begun, also while others are shown
        self._saving = 0  # changes that are on their way to the disk
        unsubscribe = presets.subscribe(self.changed.emit)
        self.destroyed.connect(unsubscribe)

    @property
    def setup(self) -> ChatSetup:
        """The values of the chat that is shown."""
        return self._own if self._own is not None else self._saved(self._conversation)

    def of(self, conversation: Conversation | None) -> ChatSetup:
        """The values of any chat."""
        shown = self._conversation
        is_shown = (shown and shown.id) == (conversation and conversation.id)
        own = self._for_new if conversation is None else self._own if is_shown else None
        return self._saved(conversation) if own is None else own

    @property
    def preset(self) -> Preset | None:
        """The preset that the values came from; None if it was deleted."""
        return self.presets.find(self.setup.preset)

    @property
    def label(self) -> str:
        """The preset's name, and whether the chat's values are others by now."""
        preset = self.preset
        if preset is None:
            return tr("Own values")
        if is_as_preset(self.setup, preset):
            return preset.short
        return tr("{preset}, changed", preset=preset.short)

    def show(self, conversation: Conversation | None) -> None:
        """Another chat is shown (None: one that is not begun), or it was changed in the store."""
        before, self._conversation = self._conversation, conversation
        if self._saving and before and conversation and before.id == conversation.id:
            return  # what is known here is newer
        self._own = self._for_new if conversation is None else _own(conversation)
        self.changed.emit()

    def begun(self) -> None:
        """The chat that was not begun was saved with its values: the next one begins afresh."""
        self._for_new = None

    def change(self, setup: ChatSetup) -> None:
        """Have the chat answered in another way from the next answer on."""
        self._own = setup
        self.changed.emit()
        chat = self._conversation
        if chat is None:
            self._for_new = setup
        else:
            self._saving += 1
            parameters = setup_to_json(setup)
            saving = self._storage.run(ChatStore.set_parameters, chat.id, setup.system_prompt, parameters)
            saving.then(self._on_saved, self._on_not_saved)

    def _saved(self, conversation: Conversation | None) -> ChatSetup:
        """The values that a chat was saved with, or else those of the default preset."""
        own = _own(conversation)
        if own is not None:
            return own
        default = setup_from(self.presets.default)
        if conversation is None:
            return default
        # A chat from before there were presets: its prompt is its own.
        return dataclasses.replace(default, system_prompt=conversation.system_prompt)

    def _on_saved(self, conversation: Conversation) -> None:
        self._saving -= 1
        self.saved.emit(conversation)

    def _on_not_saved(self, error: StorageError) -> None:
        self._saving -= 1
        self._storage.failed.emit(error)


def _own(conversation: Conversation | None) -> ChatSetup | None:
    if conversation is None or conversation.parameters is None:
        return None
    return setup_from_json(conversation.parameters, conversation.system_prompt)
