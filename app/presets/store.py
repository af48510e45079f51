"""The user's presets: read from JSON at the start, written at each change; and which one new chats take.

Qt-free; belongs to one thread. The file is small and read whole, like the settings.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from app.i18n import tr
from app.presets.errors import PresetError, PresetFileError
from app.presets.format import MOST_BYTES, NewerFileError, clean_name, from_bytes, to_text
from app.presets.preset import NAME_CHARACTERS, ChatSetup, Preset
from app.presets.shipped import BALANCED, SHIPPED
from app.settings import SettingsStore, registry
from app.text import fold
from engine.errors import EngineError
from engine.files import file_error, set_aside, write_atomically
from engine.text import clean_text


@dataclass(frozen=True)
class ImportedPresets:
    """What an import did: presets that were added (perhaps renamed), and the number known before."""

    added: tuple[Preset, ...]
    known: int


class PresetStore:
    """All presets, with the file at `path` behind the user's own (None: kept in memory alone).

    Reading never fails: an unreadable file is set aside, and `problems` holds a message for the window.
    Operations raise `PresetError` or `FileError`, and then nothing has changed.
    """

    def __init__(self, path: Path | None, settings: SettingsStore) -> None:
        self._path, self._settings = path, settings
        self._listeners: list[Callable[[], object]] = []
        self._unsaved: EngineError | None = None  # why the file must not be replaced
        self.problems: list[EngineError] = []
        self._own: tuple[Preset, ...] = tuple(self._read())

    @property
    def own(self) -> tuple[Preset, ...]:
        """The user's presets, by name."""
        return self._own

    @property
    def all(self) -> tuple[Preset, ...]:
        """The shipped presets, then the user's."""
        return SHIPPED + self._own

    @property
    def default(self) -> Preset:
        """What new chats take."""
        return self.find(self._settings.get(registry.DEFAULT_PRESET)) or BALANCED

    def find(self, preset_id: str) -> Preset | None:
        """The preset with this id, if there is such."""
        return next((preset for preset in self.all if preset.id == preset_id), None)

    def add(self, name: str, setup: ChatSetup) -> Preset:
        """Save a chat's system prompt and parameters as a new preset."""
        preset = Preset(
            secrets.token_hex(8), self._free_name(name), clean_text(setup.system_prompt), setup.parameters
        )
        self._replace((*self._own, preset))
        return preset

    def change(self, preset_id: str, setup: ChatSetup) -> Preset:
        """Give one of the user's presets other values; chats that were begun with it keep theirs."""
        changed = replace(
            self._own_preset(preset_id),
            system_prompt=clean_text(setup.system_prompt),
            parameters=setup.parameters,
        )
        self._replace(changed if preset.id == preset_id else preset for preset in self._own)
        return changed

    def rename(self, preset_id: str, name: str) -> Preset:
        """Give one of the user's presets another name."""
        renamed = replace(self._own_preset(preset_id), name=self._free_name(name, but=preset_id))
        self._replace(renamed if preset.id == preset_id else preset for preset in self._own)
        return renamed

    def delete(self, preset_id: str) -> Preset:
        """Delete one of the user's presets and return it, for `restore`; chats keep their values."""
        deleted = self._own_preset(preset_id)
        self._replace(preset for preset in self._own if preset.id != preset_id)
        return deleted

    def restore(self, preset: Preset) -> None:
        """Bring a deleted preset back."""
        if self.find(preset.id) is None:
            self._replace((*self._own, replace(preset, name=self.free_name(preset.name))))

    def take_in(self, presets: Iterable[Preset]) -> ImportedPresets:
        """Add presets from a file. What is here already is left; nothing of the user's is replaced."""
        known, own = 0, list(self._own)
        added: list[Preset] = []
        for preset in presets:
            there = self.find(preset.id)
            if there is not None and replace(there, name=preset.name, shipped=False) == preset:
                known += 1
                continue
            own_id = secrets.token_hex(8) if there is not None else preset.id
            taken = replace(preset, id=own_id, name=self.free_name(preset.name, own))
            own.append(taken)
            added.append(taken)
        if added:
            self._replace(own)
        return ImportedPresets(tuple(added), known)

    def set_default(self, preset_id: str) -> None:
        """New chats take this preset from now on."""
        self._settings.set(registry.DEFAULT_PRESET, preset_id)
        self._tell()

    def subscribe(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener()` after each change; the returned function ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _replace(self, presets: Iterable[Preset]) -> None:
        own = tuple(sorted(presets, key=lambda preset: fold(preset.name)))
        if self._unsaved is not None:
            raise PresetError(
                tr("The presets cannot be changed."), why=self._unsaved.why, action=self._unsaved.action
            )
        if self._path is not None:
            write_atomically(self._path, to_text(own))
        self._own = own
        self._tell()

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def _own_preset(self, preset_id: str) -> Preset:
        for preset in self._own:
            if preset.id == preset_id:
                return preset
        raise PresetError(
            tr("This preset cannot be changed."),
            why=tr("It came with the program, or no longer exists."),
            action=tr("Save its values as a preset of your own."),
        )

    def _free_name(self, name: str, but: str = "") -> str:
        cleaned = clean_name(name)
        if not cleaned:
            raise PresetError(tr("A preset needs a name."), action=tr("Type at least one character."))
        if fold(cleaned) in _names(preset for preset in self.all if preset.id != but):
            raise PresetError(
                tr("There is already a preset “{name}”.", name=cleaned), action=tr("Choose another name.")
            )
        return cleaned

    def free_name(self, name: str, own: Iterable[Preset] | None = None) -> str:
        """`name`, with a number where it is taken."""
        taken = _names((*SHIPPED, *(self._own if own is None else own)))
        number, free = 2, name
        while fold(free) in taken:
            begin = name[: NAME_CHARACTERS - 10].rstrip()  # the number must survive the limit of names
            free = tr("{name} ({number})", name=begin, number=number)
            number += 1
        return free

    def _read(self) -> list[Preset]:
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                return from_bytes(file.read(MOST_BYTES + 1), self._path.name)
        except FileNotFoundError:
            return []
        except NewerFileError as error:
            self._unsaved = error
            self.problems.append(error)
        except PresetFileError as error:
            self.problems.append(_put_away(self._path, error))
        except OSError as error:
            # Saving now would put an empty list in the place of what could not be read.
            self._unsaved = file_error(tr("Your presets could not be read."), self._path, error)
            self.problems.append(self._unsaved)
        return []


def _names(presets: Iterable[Preset]) -> set[str]:
    return {fold(preset.label) for preset in presets}


def _put_away(path: Path, fault: PresetFileError) -> EngineError:
    """Set the unreadable file at `path` aside; what to tell the user about it."""
    what = tr("Your presets could not be read; those that came with the program are there.")
    try:
        aside = set_aside(path, f"unreadable-{datetime.now():%Y%m%d-%H%M%S}")
    except EngineError as error:
        return PresetError(what, why=f"{fault.why} {error.what}", action=error.action)
    action = tr("The file is kept as {name}: mend it and import it.", name=aside.name)
    return PresetError(what, why=fault.why, action=action)
