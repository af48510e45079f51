"""Exchange the present data for what was unpacked from a backup: at the start, before anything is opened.

Every step is a renaming, and a file says what is to be done: whichever is cut off, the next start goes on.
What was there is moved into a folder of its own, never deleted.
"""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path

from app.backup.contents import DATABASE, FOLDER, ORDER, PRESETS, SETTINGS, UNFINISHED, is_allowed
from app.backup.errors import BackupError
from app.i18n import tr
from app.storage.errors import Notice
from engine.files import flush_directory, write_atomically

_SUFFIXES = ("-wal", "-shm", "")
_ASIDE = "before-restore-"


def ask_for_swap(data: Path, created: str, now: datetime) -> Path:
    """Have what was staged take the place of the present data at the next start; where that will be.

    Raises `FileError`.
    """
    stem, number = f"{_ASIDE}{now:%Y%m%d-%H%M%S}", 1
    while (aside := data / (stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    write_atomically(data / ORDER, json.dumps({"aside": aside.name, "created": created}))
    return aside


def is_asked(data: Path) -> bool:
    """Whether `swap_if_asked` will have something to say."""
    return (data / ORDER).exists()


def swap_if_asked(data: Path) -> Notice | None:
    """Do it, or go on with it; what to tell the user. Raises `BackupError` where the disk refuses.

    Nothing of this program may have the files open.
    """
    order = data / ORDER
    for folder in data.glob(f"{UNFINISHED}*"):  # of a backup that a crash cut off
        shutil.rmtree(folder, ignore_errors=True)
    if not order.exists():
        shutil.rmtree(data / FOLDER, ignore_errors=True)  # unpacked, but nobody has agreed
        return None
    try:
        wanted = _read(order)
        if wanted is None or not (data / FOLDER).is_dir():
            order.unlink()  # damaged, or done but for this
            return None
        aside = data / wanted["aside"]
        changed = {data, aside}
        for path in sorted((data / FOLDER).rglob("*")):
            name = path.relative_to(data / FOLDER).as_posix()
            if path.is_file() and is_allowed(name):
                _exchange(path, data / name, aside / name)
                changed |= {(data / name).parent, (aside / name).parent}
        for folder in changed:
            if folder.is_dir():
                flush_directory(folder)
        order.unlink()  # last: a power cut before it finds all of this to be done again
        shutil.rmtree(data / FOLDER, ignore_errors=True)
    except OSError as error:
        raise BackupError(
            tr("The backup could not be put in place."),
            why=tr("The system reported: {error}.", error=error.strerror or error),
            action=tr("Mend that, then start the program again: it goes on there. Nothing is lost."),
        ) from error
    return Notice(
        tr("The backup has been restored."),
        why=tr("It was made on {date}.", date=wanted["created"]),
        action=tr("What was here before is kept in {folder}.", folder=aside),
        good=True,
    )


def _exchange(staged: Path, place: Path, aside: Path) -> None:
    """Move what is at `place` to `aside`, and `staged` to `place`."""
    if staged.name not in (DATABASE, SETTINGS, PRESETS) and place.exists():
        return  # a calibration that is here already: both are kept where they are
    for suffix in _SUFFIXES if place.name == DATABASE else ("",):
        part = place.with_name(place.name + suffix)
        if part.exists():
            aside.parent.mkdir(parents=True, exist_ok=True)
            os.replace(part, _free(aside.with_name(aside.name + suffix)))
    place.parent.mkdir(parents=True, exist_ok=True)
    os.replace(staged, place)


def _free(path: Path) -> Path:
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free


def _read(order: Path) -> dict[str, str] | None:
    try:
        data = json.loads(order.read_text(encoding="utf-8"))
        wanted = {"aside": str(data["aside"]), "created": str(data["created"])}
    except (ValueError, KeyError, TypeError):
        return None
    sound = Path(wanted["aside"]).name == wanted["aside"] and wanted["aside"].startswith(_ASIDE)
    return wanted if sound else None
