from collections.abc import Iterator

import pytest

from app.storage import ChatStore, open_in_memory


@pytest.fixture
def store() -> Iterator[ChatStore]:
    """An empty store in memory."""
    from pathlib import Path

    opened = open_in_memory(Path("chats.sqlite3")).store
    yield opened
    opened.close()
