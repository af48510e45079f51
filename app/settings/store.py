"""The settings as the user left them: read from TOML at the start, written at each change.

What the file holds and this version does not know is kept. A value that cannot be used stays in the file
until the setting is changed; meanwhile the default applies and `problems` says so.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import tomli_w

from app.i18n import tr
from app.settings.option import Option, SettingsError, T, Value
from app.settings.registry import BY_KEY
from engine.errors import FileError
from engine.files import file_error, set_aside, write_atomically
from engine.text import clean_text

Listener = Callable[[str, Value], object]


class SettingsStore:
    """All settings, with the file at `path` behind them (None: kept in memory alone).

    Reading never fails: an unreadable file is set aside, defaults apply, and `problems` holds a message for
    the window. Belongs to one thread.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._listeners: list[Listener] = []
        self.problems: list[SettingsError] = []
        self._raw: dict[str, Any] = self._read()
        self._values: dict[str, Any] = {key: self._checked(option) for key, option in BY_KEY.items()}

    def get(self, option: Option[T]) -> T:
        """The value of a setting of the registry."""
        value: T = self._values[option.key]
        return value

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def set(self, option: Option[T] | str, value: T) -> None:
        """Change one setting; see `update`."""
        self.update({option if isinstance(option, str) else option.key: value})

    def update(self, values: Mapping[str, Value]) -> None:
        """Change settings by key, in one write; listeners hear of those that really change.

        Raises `SettingsError` for a value that is not allowed (then nothing is changed), and `FileError` if
        the file cannot be written (then the values apply until the program ends).
        """
        checked = {}
        for key, value in values.items():
            text = clean_text(value) if isinstance(value, str) else value
            checked[key] = BY_KEY[key].check(text)
        changed = {key: value for key, value in checked.items() if self._values[key] != value}
        self._values.update(checked)
        try:
            self._write(checked, removed=())
        finally:
            self._tell(changed)

    def reset(self, *options: Option[Any]) -> None:
        """Give settings their defaults again (none named: all that the user chooses). Raises `FileError`."""
        chosen = options or tuple(option for option in BY_KEY.values() if option.visible)
        defaults = {option.key: option.default for option in chosen}
        changed = {key: value for key, value in defaults.items() if self._values[key] != value}
        self._values.update(defaults)
        try:
            self._write({}, removed=tuple(defaults))
        finally:
            self._tell(changed)

    def stored(self, key: str) -> object:
        """What the file holds under a key that an earlier version had; None if there is nothing."""
        section, _, name = key.partition(".")
        table = self._raw.get(section)
        return table.get(name) if isinstance(table, dict) else None

    def forget(self, keys: Sequence[str]) -> None:
        """Remove what an earlier version had under these keys from the file. Raises `FileError`."""
        self._write({}, removed=tuple(key for key in keys if self.stored(key) is not None))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener(key, value)` after each change; the returned function ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self, changed: Mapping[str, Value]) -> None:
        for key, value in changed.items():
            for listener in tuple(self._listeners):
                listener(key, value)

    def _checked(self, option: Option[Any]) -> Any:
        table = self._raw.get(option.section, {})
        if isinstance(table, dict) and option.name not in table:
            return option.default
        value = table[option.name] if isinstance(table, dict) else table
        try:
            return option.check(value)
        except SettingsError as error:
            why = tr("It is so in {path}.", path=self._path)
            action = tr("{default} is used instead. {action}", default=option.default, action=error.action)
            self.problems.append(SettingsError(error.what, why=why, action=action))
            return option.default

    def _read(self) -> dict[str, Any]:
        """The file's content at the start; one that cannot be read counts as empty."""
        if self._path is None:
            return {}
        try:
            return self._content(self._path)
        except OSError as error:
            trouble = file_error(tr("The settings could not be read."), self._path, error)
            self.problems.append(SettingsError(trouble.what, why=trouble.why, action=trouble.action))
        return {}

    def _content(self, path: Path) -> dict[str, Any]:
        """What is in the file; one that is no TOML is set aside and counts as empty. Raises `OSError`."""
        try:
            return tomllib.loads(path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n"))
        except FileNotFoundError:
            return {}
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            self.problems.append(_put_away(path, str(error)))
            return {}

    def _write(self, values: Mapping[str, Value], removed: tuple[str, ...]) -> None:
        """Bring the file up to date, on top of what another window may have written meanwhile.

        A file that cannot be read now is not replaced: it may hold more than is known here.
        """
        if self._path is None:
            return
        try:
            current = self._content(self._path) or self._raw
        except OSError as error:
            raise file_error(tr("The settings could not be saved."), self._path, error) from error
        for key in removed:
            section, _, name = key.partition(".")
            table = current.get(section)
            if isinstance(table, dict):
                table.pop(name, None)
        for key, value in values.items():
            option = BY_KEY[key]
            if not isinstance(current.get(option.section), dict):
                current[option.section] = {}
            current[option.section][option.name] = value
        write_atomically(self._path, tomli_w.dumps(current, multiline_strings=False))
        self._raw = current


def _put_away(path: Path, fault: str) -> SettingsError:
    """Set the unreadable file at `path` aside; what to tell the user about it."""
    what = tr("The settings could not be read; the defaults apply.")
    why = tr("{path} is not valid TOML: {fault}.", path=path, fault=fault.rstrip("."))
    try:
        aside = set_aside(path, f"unreadable-{datetime.now():%Y%m%d-%H%M%S}")
    except FileError as error:
        return SettingsError(what, why=f"{why} {error.what}", action=error.action)
    action = tr("It is kept as {name}: mend it and put it back, or choose again.", name=aside.name)
    return SettingsError(what, why=why, action=action)
