"""This program's version."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path


def version() -> str:
    """The installed version, or the checkout's; "unknown" where neither can be told."""
    try:
        return metadata.version("fiddler-chat")
    except metadata.PackageNotFoundError:
        pass
    try:
        text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
        return str(tomllib.loads(text)["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "unknown"
