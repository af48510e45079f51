"""Gives the menus' actions their keys: those they come with, or the user's own out of the settings."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from app.menus import Menus, plain_text
from app.settings import SettingsStore, registry
from app.shortcuts.book import (
    Entry,
    Objection,
    arrange,
    objection,
    read_changes,
    write_changes,
)
from app.shortcuts.words import fixed_entries


class Shortcuts(QObject):
    """The keys as they are now. What changes them raises `FileError` if it cannot be saved.

    The commands `lent` can be given by their keys in every dialog, too: while one is open, the menus hear
    nothing, and whoever cannot read it has to zoom just there.
    """

    changed = Signal()

    def __init__(
        self, menus: Menus, settings: SettingsStore, parent: QObject, *, lent: Sequence[str] = ()
    ) -> None:
        super().__init__(parent)
        self._menus, self._settings = menus, settings
        self._lent = [menus.actions[name] for name in lent]
        QApplication.instance().focusChanged.connect(self._on_focus_changed)  # type: ignore[union-attr]
        self.destroyed.connect(settings.subscribe(self._on_setting))
        self._apply()

    def entries(self) -> list[Entry]:
        """Every command, in the menus' order, then the keys that belong to places."""
        commands = [
            Entry(command.name, plain_text(command.text), plain_text(title), command.keys)
            for title, commands in self._menus.groups
            for command in commands
        ]
        fixed = fixed_entries(send_on_enter=self._settings.get(registry.SEND_ON_ENTER))
        return arrange([*commands, *fixed], self._changes())

    def objection(self, name: str, keys: str) -> Objection | None:
        """What speaks against giving these keys to a command."""
        letters = "".join(mnemonic(title) for title, _ in self._menus.groups)
        return objection(keys, name, self.entries(), letters)

    def give(self, name: str, keys: str, *, taken_from: str = "") -> None:
        """Give a command other keys ("" for none), which another one loses."""
        changes = self._changes()
        if taken_from:
            changes[taken_from] = ""
        changes[name] = keys
        self._save(changes)

    def reset(self, name: str = "") -> None:
        """Give a command the keys it comes with (no name: all). Whoever has them meanwhile loses them."""
        if not name:
            self._save({})
            return
        changes = self._changes()
        changes.pop(name, None)
        default = next(entry.default for entry in self.entries() if entry.name == name)
        for other, keys in list(changes.items()):
            if default and keys == default:
                changes[other] = ""
        self._save(changes)

    def _changes(self) -> dict[str, str]:
        return read_changes(self._settings.get(registry.SHORTCUTS))

    def _save(self, changes: dict[str, str]) -> None:
        self._settings.set(registry.SHORTCUTS, write_changes(changes))

    def _on_setting(self, key: str, _value: object) -> None:
        if key in (registry.SHORTCUTS.key, registry.SEND_ON_ENTER.key):
            self._apply()
            self.changed.emit()

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        window = None if now is None else now.window()
        if isinstance(window, QDialog):
            window.addActions(self._lent)  # again does no harm

    def _apply(self) -> None:
        for entry in self.entries():
            if not entry.fixed:
                self._menus.actions[entry.name].setShortcut(QKeySequence(entry.keys))


def mnemonic(text: str) -> str:
    """The letter that opens a menu together with Alt; "" for none."""
    _, _, rest = text.partition("&")
    return rest[:1]
