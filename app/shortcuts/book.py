"""All keys of the program: commands with the keys they come with, and those that the user gave them.

Pure, but for Qt's names of keys. Keys are kept in Qt's portable spelling: "Ctrl+N", on a Mac Command+N.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, cast

from PySide6.QtCore import QKeyCombination, Qt
from PySide6.QtGui import QKeySequence

from app.i18n import tr

_Key, _Modifier = Qt.Key, Qt.KeyboardModifier
_Format = QKeySequence.SequenceFormat

# What every text field understands; as a shortcut of the window it would be lost there.
_EDITING = (
    *("Ctrl+A", "Ctrl+C", "Ctrl+V", "Ctrl+X", "Ctrl+Z", "Ctrl+Y", "Ctrl+Shift+Z", "Ctrl+Home", "Ctrl+End"),
    *("Ctrl+Left", "Ctrl+Right", "Ctrl+Up", "Ctrl+Down", "Ctrl+Backspace", "Ctrl+Del", "Ctrl+Ins"),
    *("Ctrl+Return", "Ctrl+Enter", "Ctrl+Tab", "Ctrl+Shift+Tab", "Alt+F4", "Shift+F10"),
)


@dataclass(frozen=True)
class Entry:
    """One line of the list: what is done, in which group, by which keys ("" for none)."""

    name: str  # of the command, as it is saved; "" for keys that cannot be changed
    text: str
    group: str
    default: str = ""
    keys: str = ""

    @property
    def fixed(self) -> bool:
        """Whether the keys belong to a place and cannot be changed."""
        return not self.name

    @property
    def changed(self) -> bool:
        """Whether the user gave it other keys."""
        return not self.fixed and self.keys != self.default


class Fault(Enum):
    """Why keys cannot be a command's."""

    TAKEN = auto()  # by another command, which could give them away
    RESERVED = auto()  # for a place of the window, or for writing
    TYPED = auto()  # they write something
    MENU = auto()  # they open a menu


@dataclass(frozen=True)
class Objection:
    """What speaks against keys, and whose they are."""

    fault: Fault
    owner: Entry | None = None


def arrange(entries: Sequence[Entry], changes: Mapping[str, str]) -> list[Entry]:
    """The entries with the keys that the user gave them.

    No keys belong to two: those of places go first, then the user's choices, then what commands come with.
    """
    given: dict[str, str] = {}  # keys to the command that has them, the user's choices first
    for entry in entries:
        if entry.fixed:
            given.setdefault(entry.keys, "")
    for entry in entries:
        if not entry.fixed and changes.get(entry.name):
            given.setdefault(changes[entry.name], entry.name)
    for entry in entries:
        if not entry.fixed and entry.default and entry.name not in changes:
            given.setdefault(entry.default, entry.name)
    own = {name: keys for keys, name in given.items() if name}
    return [entry if entry.fixed else replace(entry, keys=own.get(entry.name, "")) for entry in entries]


def objection(keys: str, name: str, entries: Sequence[Entry], menu_letters: str) -> Objection | None:
    """What speaks against giving `keys` to the command `name`; None if nothing does."""
    for entry in entries:
        if entry.keys and entry.keys == keys and entry.name != name:
            return Objection(Fault.RESERVED if entry.fixed else Fault.TAKEN, entry)
    if keys in _EDITING:
        return Objection(Fault.RESERVED)
    if _is_typed(keys):
        return Objection(Fault.TYPED)
    if keys.startswith("Alt+") and keys.removeprefix("Alt+").lower() in menu_letters.lower():
        return Objection(Fault.MENU)
    return None


def portable(combination: QKeyCombination) -> str:
    """A pressed combination as it is saved; "" while only Ctrl, Alt, Shift or the like are held."""
    modifiers = combination.keyboardModifiers() & ~_Modifier.KeypadModifier
    key = combination.key()
    if key in (
        _Key.Key_Control,
        _Key.Key_Shift,
        _Key.Key_Alt,
        _Key.Key_Meta,
        _Key.Key_AltGr,
        _Key.Key_unknown,
    ):
        return ""
    if key in (_Key.Key_CapsLock, _Key.Key_NumLock, _Key.Key_ScrollLock, _Key.Key_Super_L, _Key.Key_Super_R):
        return ""
    return QKeySequence(QKeyCombination(modifiers, key)).toString(_Format.PortableText)


def shown(keys: str) -> str:
    """Keys as this computer's keyboards name them, and the program's texts: Qt's Return is Enter there."""
    native = QKeySequence.fromString(keys, _Format.PortableText).toString(_Format.NativeText)
    return re.sub(r"\bReturn$", tr("Enter"), native)


def read_changes(text: str) -> dict[str, str]:
    """The user's own keys out of the settings; what is not readable there counts as unchanged."""
    try:
        saved = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(saved, dict):
        return {}
    return {
        name: keys
        for name, keys in saved.items()
        if name and isinstance(keys, str) and (not keys or is_usable(keys))
    }


def write_changes(changes: Mapping[str, str]) -> str:
    """The user's own keys for the settings; "" for none."""
    return json.dumps(dict(changes), ensure_ascii=False, sort_keys=True) if changes else ""


def is_usable(keys: str) -> bool:
    """Whether Qt knows these keys, in this spelling."""
    sequence = QKeySequence.fromString(keys, _Format.PortableText)
    if sequence.count() != 1 or sequence.toString(_Format.PortableText) != keys:
        return False
    return _combination(keys).key() is not _Key.Key_unknown


def _is_typed(keys: str) -> bool:
    """Whether a text field would take the keys as text, or as a step in it."""
    combination = _combination(keys)
    if combination.keyboardModifiers() & (
        _Modifier.ControlModifier | _Modifier.AltModifier | _Modifier.MetaModifier
    ):
        return False
    return not _Key.Key_F1 <= combination.key() <= _Key.Key_F35


def _combination(keys: str) -> QKeyCombination:
    combination: QKeyCombination = cast(Any, QKeySequence.fromString(keys, _Format.PortableText))[0]
    return combination
