"""What a second start says to the program that runs already. Pure: bytes in, bytes out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1_000_000  # a longer message is not ours
TAKEN = b"taken\n"  # the answer


@dataclass(frozen=True)
class Handover:
    """Show your window, and import these files; `token` lets a Wayland desktop allow the former."""

    files: tuple[Path, ...] = ()
    token: str = ""


def encode(handover: Handover) -> bytes:
    """One line of JSON."""
    message = {"files": [str(path) for path in handover.files], "token": handover.token}
    return json.dumps(message).encode("ascii") + b"\n"


def decode(line: bytes) -> Handover | None:
    """What the line says; None if it was not written by `encode`. Unknown fields are passed over."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    files, token = message.get("files"), message.get("token", "")
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        return None
    return Handover(tuple(map(Path, files)), token if isinstance(token, str) else "")


def absolute(files: Sequence[str]) -> tuple[Path, ...]:
    """Files of a command line as another process, in another folder, finds them."""
    return tuple(Path(file).expanduser().absolute() for file in files)
