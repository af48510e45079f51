"""Remembers which files of a model's folder were downloaded and checked, so that none is hashed again."""

from __future__ import annotations

import json
from pathlib import Path

from engine.download import RemoteFile
from engine.files import write_atomically

RECORD_FILE = ".fiddler-download.json"


class DownloadRecord:
    """The checked files of `folder` and their hashes, kept in the folder itself.

    A size alone does not tell whether a file is the wanted one: weights of another revision are as long.
    """

    def __init__(self, folder: Path) -> None:
        """Read the record; a missing or damaged one is empty, which only costs hashing."""
        self._folder = folder
        self._hashes: dict[str, str] = {}
        try:
            raw = json.loads((folder / RECORD_FILE).read_text("utf-8"))
        except (OSError, ValueError):
            return
        if isinstance(raw, dict):
            self._hashes = {name: value for name, value in raw.items() if isinstance(value, str)}

    def has(self, file: RemoteFile) -> bool:
        """Whether `file` is in the folder, complete, and known to be right."""
        path = self._folder / file.name
        known = self._hashes.get(file.name) == file.digest.hexdigest
        return known and path.is_file() and path.stat().st_size == file.size

    def add(self, file: RemoteFile) -> None:
        """Note that `file` is in the folder and was checked. Raises `FileError`."""
        self._hashes[file.name] = file.digest.hexdigest
        write_atomically(self._folder / RECORD_FILE, json.dumps(self._hashes, indent=1, sort_keys=True))
