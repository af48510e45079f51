"""Replace a damaged database by a fresh one with what can be rescued; a crash in between loses neither.

First the rescued chats are written to a file of their own, then the damaged file is set aside, then the new
one takes its place. Whichever step is cut off, the next start begins again or goes on.
"""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime
from pathlib import Path

from app.i18n import tr, tr_count
from app.storage.database import connect
from app.storage.errors import DamagedError, Notice
from app.storage.salvage import Salvaged, salvage
from app.storage.schema import migrate
from engine.files import flush_directory

# The file first: while it is in its place, nothing of it has been moved and the rescue can begin again.
_SUFFIXES = ("", "-wal", "-shm")


def replace_damaged(path: Path, now: datetime, error: DamagedError) -> Notice:
    """Do all of it; what to tell the user. Raises `sqlite3.Error` or `OSError` where it is cut off."""
    rescuing = _beside(path, "rescuing")
    _remove(rescuing)
    with closing(connect(rescuing)) as fresh:
        migrate(fresh, rescuing, now)
        rescued = salvage(path, fresh)
    os.replace(rescuing, _beside(path, "rescued"))
    aside = _set_aside(path, now)
    os.replace(_beside(path, "rescued"), path)
    flush_directory(path.parent)  # what is saved from now on is in the new file
    return _notice(error, aside, rescued)


def finish_replacing(path: Path, now: datetime) -> Notice | None:
    """Take the last steps of a replacement that a crash cut off; forget one that had not got so far.

    What to tell the user, if the file has been replaced.
    """
    rescued = _beside(path, "rescued")
    if path.exists() or not rescued.exists():
        rescued.unlink(missing_ok=True)
        return None
    _set_aside(path, now)  # the damaged file's log, which would be taken for the new one's
    os.replace(rescued, path)
    flush_directory(path.parent)
    return Notice(
        _replaced(),
        why=tr("The program ended while it was rescuing them; now the rest has been done."),
        action=tr("The damaged file is kept beside {path}, with “damaged” in its name.", path=path),
    )


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f"{path.name}.{ending}")


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _set_aside(path: Path, now: datetime) -> Path:
    """Rename the file with its log, so that both still belong together; the new name of the file."""
    number, stamp = 1, f"{now:%Y%m%d-%H%M%S}"
    while (aside := _beside(path, f"damaged-{stamp}-{number}")).exists():
        number += 1
    for suffix in _SUFFIXES:
        part = path.with_name(path.name + suffix)
        if part.exists():
            os.replace(part, aside.with_name(aside.name + suffix))
    return aside


def _replaced() -> str:
    return tr("The file with your chats was damaged and has been replaced.")


def _notice(error: DamagedError, aside: Path, rescued: Salvaged) -> Notice:
    if rescued.messages or rescued.conversations:
        chats = tr_count("{count} chat", "{count} chats", rescued.conversations)
        messages = tr_count("{count} message", "{count} messages", rescued.messages)
        outcome = tr("Rescued: {chats}, {messages}.", chats=chats, messages=messages)
    else:
        outcome = tr("Nothing in it could be read, so you start with an empty list.")
    return Notice(
        _replaced(),
        why=f"{error.why} {outcome}",
        action=tr("The damaged file is kept as {path}. Copy it before trying other tools on it.", path=aside),
    )
