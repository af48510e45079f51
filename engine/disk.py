"""Whether a folder's disk has room for what is about to be written. Torch-free."""

from __future__ import annotations

import shutil
from pathlib import Path

from engine.requirements import Item, Need, Requirements, Resource

_SLACK = 64 << 20  # bytes left free for the file system itself and for other programs


def free_bytes(folder: Path) -> int:
    """What this user may still write on the disk that holds `folder`, which need not exist yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def disk_requirements(folder: Path, purpose: str, items: tuple[Item, ...]) -> Requirements:
    """The need for disk space to `purpose` (an infinitive: "download X") below `folder`, item by item."""
    need = Need(
        Resource.DISK,
        (*items, Item("kept free for the system", _SLACK)),
        free_bytes(folder),
        advice=(f"Free some space on the disk of {folder}, or choose a folder on another disk.",),
    )
    return Requirements((need,), purpose)
