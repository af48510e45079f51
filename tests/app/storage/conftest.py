from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.storage import ChatStore, open_store


class Clock:
    """A clock that tests move; each reading is a second after the one before."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "chats" / "chats.sqlite3"


@pytest.fixture
def reopen(database: Path, clock: Clock) -> Iterator[Callable[[], ChatStore]]:
    """Open the store again, as a restarted program does; all are closed at the end."""
    stores: list[ChatStore] = []

    def open_again() -> ChatStore:
        stores.append(open_store(database, clock).store)
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()


@pytest.fixture
def store(reopen: Callable[[], ChatStore]) -> ChatStore:
    return reopen()
