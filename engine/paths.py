"""The one place that knows where the program's own files and the user's data lie.

Nothing here creates a folder by itself: a caller that is about to write says so with `ensure_dir`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs

from engine.errors import EngineError

APP_NAME = "fiddler-chat"
DATA_DIR_VARIABLE = "FIDDLER_DATA_DIR"


class PathError(EngineError):
    """A folder cannot be used, or a file of the installation is missing."""


def assets_dir() -> Path:
    """The folder of shipped files: in a frozen program, a checkout (editable too), or an installation."""
    bundle = getattr(sys, "_MEIPASS", None)  # set by PyInstaller's boot loader
    if bundle is not None:
        return Path(bundle) / "assets"
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").is_file():
        return root / "assets"
    return root / "app" / "assets"  # where the wheel places them: site-packages has no room for `assets`


def find_asset(name: str) -> Path | None:
    """The shipped file or folder `name` (`/` between parts), or None where this installation lacks it."""
    path = assets_dir().joinpath(*name.split("/"))
    return path if path.exists() else None


def asset(name: str) -> Path:
    """The shipped file or folder `name`, such as `icons/app.svg`; `PathError` if it is missing."""
    path = find_asset(name)
    if path is None:
        raise PathError(
            f"A part of the program is missing: {name}.",
            why=f"It was looked for in {assets_dir()}.",
            action="Install the program again.",
        )
    return path


def data_dir() -> Path:
    """Where models, profiles, chats and settings lie; `FIDDLER_DATA_DIR` overrides the system's choice."""
    chosen = os.environ.get(DATA_DIR_VARIABLE)
    if chosen:
        return Path(os.path.expanduser(chosen)).absolute()
    return Path(platformdirs.user_data_dir(APP_NAME, appauthor=False))


def models_dir() -> Path:
    """Where downloaded and converted models are kept, one folder each."""
    return data_dir() / "models"


def profiles_dir() -> Path:
    """Where calibration profiles are kept."""
    return data_dir() / "profiles"


def cache_dir() -> Path:
    """Files that can be fetched or made again; moves with the data when `FIDDLER_DATA_DIR` is set."""
    if os.environ.get(DATA_DIR_VARIABLE):
        return data_dir() / "cache"
    return Path(platformdirs.user_cache_dir(APP_NAME, appauthor=False))


def ensure_dir(path: Path) -> Path:
    """Create `path` with its parents if needed and return it; `PathError` says why it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PathError(
            f"The folder {path} cannot be created.",
            why=f"The system says: {error.strerror or error}.",
            action=f"Make room, get the right to write there, or set {DATA_DIR_VARIABLE} to another folder.",
        ) from error
    return path
