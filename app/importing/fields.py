"""Values out of JSON objects that strangers wrote: each is what it should be, or there is a complaint."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.i18n import tr
from app.importing.errors import UnreadableError
from engine.text import clean_text

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, tzinfo=UTC)  # of what the database holds


class Fields:
    """The values of one JSON object; `place` names it in complaints ("message 3")."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, Mapping):
            raise UnreadableError(tr("{place} is not an object", place=place))
        self._values: Mapping[str, Any] = value
        self._place = place

    def get(self, key: str) -> Any:
        """Whatever is under `key`; None if nothing is."""
        return self._values.get(key)

    def text(self, key: str) -> str:
        """A text."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self.complaint(key)
        return clean_text(value)

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise self.complaint(key)
        return value

    def number(self, key: str) -> int:
        """A whole number."""
        value = self._values.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.complaint(key)
        return value

    def time(self, key: str) -> datetime:
        """A time with its zone, such as `2026-01-02T03:04:05.678Z`."""
        try:
            moment = datetime.fromisoformat(self.text(key))
            if moment.tzinfo is not None and _EARLIEST <= moment <= _LATEST:
                return moment.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
        raise self.complaint(key)

    def time_or_none(self, key: str) -> datetime | None:
        """The same, or null."""
        return None if self._values.get(key) is None else self.time(key)

    def object_or_none(self, key: str) -> dict[str, Any] | None:
        """An object, or null."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.complaint(key)
        return value

    def items(self, key: str) -> list[Any]:
        """An array."""
        value = self._values.get(key)
        if not isinstance(value, list):
            raise self.complaint(key)
        return value

    def complaint(self, key: str) -> UnreadableError:
        """What to raise when the value under `key` cannot be used."""
        if key not in self._values:
            return UnreadableError(tr("{place} has no “{key}”", place=self._place, key=key))
        return UnreadableError(tr("“{key}” of {place} cannot be used", key=key, place=self._place))
