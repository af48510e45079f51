"""The data folder with chats, settings, presets and a calibration in it."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from app.backup.writing import back_up
from app.paths import database_path, presets_path, settings_path
from app.storage import open_store
from engine.profile_store import save_profile
from engine.progress import CancelToken, ignore_progress
from tests.app.wizard_fakes import make_profile


def chats(path: Path) -> list[tuple[str, str]]:
    """The title of each chat at `path`, with its first message."""
    store = open_store(path).store
    try:
        found = [line.conversation for line in store.conversations(archived=None)]
        return [(chat.title, store.messages(chat.id)[0].content) for chat in found]
    finally:
        store.close()


def write_chat(title: str, content: str) -> None:
    """Add a chat to the present data."""
    store = open_store(database_path()).store
    store.add_message(store.create_conversation(title).id, "user", content)
    while store.index_some():
        pass
    store.close()


@pytest.fixture
def filled(data_dir: Path) -> Path:
    """The data folder."""
    write_chat("Rome", "When was it founded?")
    settings_path().write_text('[appearance]\ntheme = "dark"\n', "utf-8")
    presets_path().write_text("{}", "utf-8")
    save_profile(make_profile())
    return data_dir


@pytest.fixture
def backup(filled: Path, tmp_path: Path) -> Path:
    """A backup of it."""
    target = tmp_path / "mine.zip"
    back_up(target, ignore_progress, CancelToken())
    return target


@pytest.fixture
def changed(backup: Path, tmp_path: Path) -> Callable[[dict[str, bytes | None]], Path]:
    """A function that makes a copy of the backup with other content in some files (None: without them)."""

    def change(changes: dict[str, bytes | None]) -> Path:
        target = tmp_path / "changed.zip"
        with zipfile.ZipFile(backup) as source, zipfile.ZipFile(target, "w") as copy:
            for name in {*source.namelist(), *changes}:
                content = changes[name] if name in changes else source.read(name)
                if content is not None:
                    copy.writestr(name, content)
        return target

    return change
