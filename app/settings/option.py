"""One setting: its key, what it may be, its default, and what is said about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.i18n import tr
from engine.errors import EngineError

Value = bool | int | float | str
T = TypeVar("T", bool, int, float, str)


class SettingsError(EngineError):
    """A setting has a value that it cannot have, or the settings cannot be read or saved."""


@dataclass(frozen=True)
class Choice:
    """One of the values of a setting that is chosen from a list; `label_text` as it is before translation."""

    value: str
    label_text: str

    @property
    def label(self) -> str:
        """What the user chooses, in their language."""
        return tr(self.label_text)


@dataclass(frozen=True)
class Option(Generic[T]):
    """A setting. The type is that of `default`; a whole number is taken where a float is wanted.

    `minimum` and `maximum` bound a number (inclusive), `choices` a string. The texts are English (marked with
    `tr_noop`): `help_text` says what the setting changes for the user, `synonyms_text` are other words that
    people may search for. Settings that nobody chooses, such as the window's place, have no label: dialogs
    leave them out.
    """

    key: str
    default: T
    label_text: str = ""
    help_text: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[Choice, ...] = ()
    synonyms_text: str = ""

    @property
    def section(self) -> str:
        """The part of the key before the dot: the TOML table, and a page of the dialog."""
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """The part of the key after the dot."""
        return self.key.partition(".")[2]

    @property
    def label(self) -> str:
        """The setting's name in the user's language."""
        return tr(self.label_text) if self.label_text else ""

    @property
    def help(self) -> str:
        """What the setting does, in the user's language."""
        return tr(self.help_text) if self.help_text else ""

    @property
    def synonyms(self) -> str:
        """Other words that the setting is found by, its choices' among them, in the user's language."""
        own = tr(self.synonyms_text) if self.synonyms_text else ""
        return " ".join([own, *(choice.label for choice in self.choices)]).strip()

    @property
    def visible(self) -> bool:
        """Whether the user chooses it."""
        return bool(self.label_text)

    def check(self, value: object) -> T:
        """`value` as this setting's type; `SettingsError` says what is allowed when it cannot be that."""
        kind = type(self.default)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind or not self._in_range(value):
            raise SettingsError(
                tr("“{label}” cannot be {value}.", label=self.label or self.key, value=_shown(value)),
                action=tr("Choose {allowed}.", allowed=self.allowed),
            )
        return value

    @property
    def allowed(self) -> str:
        """The values that are allowed, in words."""
        if self.choices:
            return tr("one of: {values}", values=", ".join(choice.value for choice in self.choices))
        if isinstance(self.default, bool):
            return tr("true or false")
        if isinstance(self.default, str):
            return tr("a text")
        kind = tr("a whole number") if isinstance(self.default, int) else tr("a number")
        low, high = self.minimum, self.maximum
        if low is not None and high is not None:
            return tr("{kind} from {low} to {high}", kind=kind, low=f"{low:g}", high=f"{high:g}")
        if low is not None:
            return tr("{kind}, {low} or more", kind=kind, low=f"{low:g}")
        return kind

    def _in_range(self, value: object) -> bool:
        if isinstance(value, str):
            return not self.choices or any(choice.value == value for choice in self.choices)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        if not math.isfinite(value):
            return False
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:59] + "…"
