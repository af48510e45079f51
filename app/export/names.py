"""File names that every system accepts, from titles that people write."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from engine.text import clean_text

_MOST_CHARACTERS = 100
_MOST_BYTES = 200  # of 255 that most file systems allow, with room for the suffix and a number
# Not allowed on Windows; the controls are allowed elsewhere but nobody can type them. Direction marks could
# show "exe.md" for "dm.exe".
_FORBIDDEN = re.compile('[<>:"/\\\\|?*\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+')
# Devices on Windows, with any suffix. The superscripts are digits to it.
_RESERVED = re.compile(
    "(?:con|prn|aux|nul|conin\\$|conout\\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])$", re.IGNORECASE
)


def suggested_name(title: str, suffix: str) -> str:
    """A file name for `title` that is legal on Windows, macOS and Linux; `suffix` such as `.md`."""
    name = unicodedata.normalize("NFC", clean_text(title))
    name = " ".join(_FORBIDDEN.sub(" ", name).split())
    name = _shortened(name).strip(" .")  # Windows drops dots and spaces at the end; a dot in front hides
    if _RESERVED.match(name.partition(".")[0].rstrip()):
        name = f"_{name}"
    return (name or "chat") + suffix


def free_path(folder: Path, name: str) -> Path:
    """`folder/name`, or with a number before the suffix if that exists: `Rome (2).md`."""
    path = folder / name
    number = 2
    while path.exists():
        path = folder / f"{Path(name).stem} ({number}){Path(name).suffix}"
        number += 1
    return path


def _shortened(name: str) -> str:
    name = name[:_MOST_CHARACTERS]
    while len(name.encode()) > _MOST_BYTES:
        name = name[:-1]
    return name
