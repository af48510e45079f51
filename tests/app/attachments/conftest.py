from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage import ChatStore, open_in_memory


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    """Chats in memory."""
    opened = open_in_memory(tmp_path / "chats.sqlite3").store
    yield opened
    opened.close()
