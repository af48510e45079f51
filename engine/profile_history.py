"""Every calibration that was ever saved, kept beside the one in use. Nothing is deleted or overwritten.

The folder `history` among the profiles holds a file for each, named after the profile's own file and the time
of the calibration. Taking an earlier one back is saving it again (`engine.profile_store.save_profile`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from engine.errors import CalibrationError
from engine.files import file_error, write_atomically
from engine.profile import Profile

FOLDER = "history"


@dataclass(frozen=True)
class KeptProfile:
    """A calibration that was kept. `in_use`: it is the one that its machine, model and precision use now."""

    profile: Profile
    in_use: bool


@dataclass(frozen=True)
class History:
    """All that were kept, the newest first, and the names of files that cannot be read."""

    kept: tuple[KeptProfile, ...] = ()
    unreadable: tuple[str, ...] = ()


def keep(profile: Profile, name: str, folder: Path) -> Path:
    """Keep `profile`, whose own file in `folder` is called `name`; the kept file's path. Raises `FileError`.

    One that is kept already is left as it is.
    """
    text = profile.to_json()
    for path in _names(folder / FOLDER, name, profile.created):
        try:
            if path.read_text(encoding="utf-8") == text:
                return path
        except FileNotFoundError:
            write_atomically(path, text)
            return path
        except UnicodeDecodeError:
            continue  # damaged: left as it is
        except OSError as error:
            raise file_error("The calibration could not be kept.", path, error) from error
    raise AssertionError("the names have no end")


def history(folder: Path) -> History:
    """What was kept in `folder`, and the profiles in use that were saved before there was a history."""
    in_use = {path.name: profile for path in _files(folder) if (profile := _read(path)) is not None}
    found: dict[str, tuple[str, Profile]] = {}
    unreadable = []
    for path in _files(folder / FOLDER):
        profile = _read(path)
        if profile is None:
            unreadable.append(path.name)
        else:
            found.setdefault(profile.to_json(), (f"{path.name.partition('.')[0]}.json", profile))
    for name, profile in in_use.items():
        found.setdefault(profile.to_json(), (name, profile))
    used = {(name, profile.to_json()) for name, profile in in_use.items()}
    kept = [KeptProfile(profile, (name, text) in used) for text, (name, profile) in found.items()]
    kept.sort(key=lambda each: each.profile.created, reverse=True)
    return History(tuple(kept), tuple(unreadable))


def _names(folder: Path, name: str, created: str) -> Iterator[Path]:
    stem, moment = name.removesuffix(".json"), re.sub(r"[^0-9]", "", created)[:14]
    yield folder / f"{stem}.{moment}.json"
    for number in count(2):
        yield folder / f"{stem}.{moment}-{number}.json"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*-*.json")) if folder.is_dir() else []


def _read(path: Path) -> Profile | None:
    try:
        return Profile.from_json(path.read_text(encoding="utf-8"))
    except (CalibrationError, OSError, UnicodeDecodeError):
        return None
