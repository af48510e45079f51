"""Texts that are saved again and again while they change: the newest of each, until it could be saved."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, Protocol, TypeVar

from app.storage.errors import StorageError

K = TypeVar("K")


class _Saving(Protocol):
    def then(self, done: Callable[[None], object], failed: Callable[[StorageError], object]) -> object: ...


class Kept(Generic[K]):
    """`save` begins to save a key's text. What could not be saved is tried `again`; `tell` hears of it once.

    Without this, a full disk would be told of at every pause of whoever types.
    """

    def __init__(
        self,
        save: Callable[[K, str], _Saving],
        tell: Callable[[StorageError], object],
        again: Callable[[], object],
    ) -> None:
        self._save, self._tell, self._again = save, tell, again
        self._waiting: dict[K, str] = {}
        self._newest: dict[K, str] = {}  # that are not known to be saved
        self._troubled = False

    def put(self, key: K, text: str) -> None:
        """Keep this text at the next `flush`."""
        self._waiting[key] = self._newest[key] = text

    def flush(self) -> None:
        """Begin to save what waits."""
        waiting, self._waiting = self._waiting, {}
        for key, text in waiting.items():
            self._save(key, text).then(
                partial(self._on_saved, key, text), partial(self._on_failed, key, text)
            )

    def _on_saved(self, key: K, text: str, _: None) -> None:
        self._troubled = False
        if self._newest.get(key) == text:
            del self._newest[key]

    def _on_failed(self, key: K, text: str, error: StorageError) -> None:
        if self._newest.get(key) == text:  # else a newer one is on its way
            self._waiting.setdefault(key, text)
            self._again()
        if not self._troubled:
            self._troubled = True
            self._tell(error)
