"""Ties a widget to a setting, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.settings import Option, SettingsError, SettingsStore
from app.settings.option import Value
from engine.errors import EngineError


class Binding(QObject):
    """One setting. The widget calls `save`; `show_value` is called when the setting changes elsewhere.

    `trouble` carries what could not be saved; `invalid` what is wrong with what is typed ("": all is well).
    """

    trouble = Signal(object)  # EngineError
    changed = Signal()  # the setting has another value, whoever gave it
    invalid = Signal(str)

    def __init__(self, settings: SettingsStore, option: Option[Any], parent: QObject) -> None:
        super().__init__(parent)
        self.option = option
        self._settings = settings
        self._unsubscribe: Callable[[], None] | None = settings.subscribe(self._on_changed)
        self.show_value: Callable[[Any], None] = lambda _: None

    @property
    def value(self) -> Any:
        """What is in the settings."""
        return self._settings[self.option.key]

    def save(self, value: Value) -> None:
        """Put the widget's value into the settings; reports instead of raising."""
        try:
            self._settings.update({self.option.key: value})
        except SettingsError as error:
            self.invalid.emit(str(error))
            return
        except EngineError as error:
            self.trouble.emit(error)
        self.invalid.emit("")

    def release(self) -> None:
        """Listen no longer: the dialog is being closed. What is still being typed is saved all the same."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _on_changed(self, key: str, value: Value) -> None:
        if key == self.option.key:
            self.show_value(value)
            self.changed.emit()
