"""What a backup holds: a zip whose `backup.json` names each file with its size and checksum.

{"format": "fiddler-chat-backup", "version": 1, "program": "0.5.0", "chats": 12,
 "created": "2026-03-12T10:00:00+00:00", "files": {"chats.sqlite3": {"bytes": 4096, "sha256": "…"}, …}}
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from app.backup.errors import BackupError
from app.i18n import tr

FORMAT = "fiddler-chat-backup"
VERSION = 1
MANIFEST = "backup.json"
FOLDER = "restore"  # in the data folder: what was unpacked
UNFINISHED = "unfinished-backup-"  # begins the name of a folder with a copy of the chats
ORDER = "restore.json"  # beside it: it is to take the place of the present data at the next start
DATABASE, SETTINGS, PRESETS = "chats.sqlite3", "settings.toml", "presets.json"
# No name leads out of the folder.
_PROFILE = re.compile(r"profiles/(history/)?[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)?\.json")
LARGEST_MANIFEST = 8 * 2**20
LARGEST_TEXT = 64 * 2**20  # bytes of every other file but the chats, which alone are not read as a whole


@dataclass(frozen=True)
class Entry:
    """A file in a backup."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """When and by which version of the program a backup was made, how many chats it has, and its files."""

    created: str
    program: str
    chats: int
    files: dict[str, Entry]

    def to_json(self) -> str:
        """The text of `backup.json`."""
        data = {"format": FORMAT, "version": VERSION, **asdict(self)}
        return json.dumps(data, indent=1, ensure_ascii=False) + "\n"

    @staticmethod
    def from_json(text: bytes) -> Manifest:
        """Read `backup.json`. Raises `BackupError` for a newer format, and for anything that is none."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError(data["format"])
            if type(data["version"]) is not int or data["version"] < 1:
                raise ValueError(data["version"])
            if data["version"] > VERSION:
                raise _newer(data["program"])
            files = {name: _entry(name, entry) for name, entry in data["files"].items()}
            return Manifest(str(data["created"]), str(data["program"]), int(data["chats"]), files)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise foreign() from error


def is_allowed(name: str) -> bool:
    """Whether a backup may have a file of this name: nothing else is ever unpacked."""
    return name in (DATABASE, SETTINGS, PRESETS) or _PROFILE.fullmatch(name) is not None


def foreign() -> BackupError:
    """The error for a file that is no backup."""
    return BackupError(
        tr("This file is not a backup of Fiddler Chat."),
        why=tr("A backup is a zip file that this program has made with “Back up…”."),
        action=tr("Choose another file. For chats that were exported there is “Import chats…” in the menu."),
    )


def damaged(what: str) -> BackupError:
    """The error for a backup whose content is not what was written."""
    return BackupError(
        tr("This backup is damaged and cannot be restored."),
        why=what,
        action=tr("Take another copy of it, or an older backup. Your present data is unchanged."),
    )


def _newer(program: object) -> BackupError:
    return BackupError(
        tr("This backup cannot be restored."),
        why=tr("It was made by a newer version of this program ({version}).", version=program),
        action=tr("Install the newest version, then try again."),
    )


def _entry(name: str, data: Any) -> Entry:
    entry = Entry(data["bytes"], data["sha256"])
    sound = type(entry.bytes) is int and entry.bytes >= 0 and type(entry.sha256) is str
    if not sound or not is_allowed(name) or (name != DATABASE and entry.bytes > LARGEST_TEXT):
        raise ValueError(name)
    return entry
