"""Read a file that is to be attached. Waits for the disk: never called in the window's thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.attachments.decoding import NotTextError, decode
from app.attachments.errors import AttachmentError
from app.attachments.form import Attachment, clean_name
from app.i18n import tr
from engine.files import open_to_read
from engine.units import format_bytes

MOST_BYTES = 2 * 2**20  # many times what a context holds
_LOOK_BYTES = 64 * 2**10
# What the beginnings of files with chats hold (`app.importing`): ours, ChatGPT's.
_CHAT_SIGNS = (b'"fiddler-chat-conversation"', b'"mapping"', b'"current_node"')
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True)
class ReadFiles:
    """What became of some files: texts, refusals, and files with chats that were not read."""

    attachments: tuple[Attachment, ...] = ()
    errors: tuple[AttachmentError, ...] = ()
    chats: tuple[Path, ...] = ()


def read_files(paths: Sequence[Path], *, sort_out_chats: bool = False) -> ReadFiles:
    """Read all that can be read; `sort_out_chats` leaves JSON files and archives with chats alone."""
    attachments: list[Attachment] = []
    errors: list[AttachmentError] = []
    chats: list[Path] = []
    for path in paths:
        try:
            if sort_out_chats and _may_hold_chats(path):
                chats.append(path)
            else:
                attachments.append(read_attachment(path))
        except AttachmentError as error:
            errors.append(error)
    return ReadFiles(tuple(attachments), tuple(errors), tuple(chats))


def read_attachment(path: Path) -> Attachment:
    """The text in a file. Raises `AttachmentError`."""
    data = _bytes_of(path)
    try:
        text = decode(data)
    except NotTextError as error:
        raise _refused(path, _kind(data), tr("Save it as text in UTF-8, then attach that.")) from error
    if not text.strip():
        raise _refused(path, tr("There is no text in it."), tr("Choose another file."))
    return Attachment(clean_name(path.name), text)


def _bytes_of(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise _refused(path, tr("It is a folder."), tr("Attach the files in it."))
        if not path.is_file():
            raise _refused(path, tr("It is not there, or no ordinary file."), tr("Choose another file."))
        with open_to_read(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        why = tr("The system reported: {error}.", error=error.strerror or error)
        raise _refused(
            path, why, tr("Check that the file is there and may be read, then try again.")
        ) from error
    if len(data) > MOST_BYTES:
        why = tr(
            "It is larger than {size}, more than any model here can read.", size=format_bytes(MOST_BYTES)
        )
        raise _refused(path, why, tr("Attach the part that matters."))
    return data


def _refused(path: Path, why: str, action: str) -> AttachmentError:
    what = tr("“{name}” was not attached.", name=clean_name(path.name))
    return AttachmentError(what, why=why, action=action)


def _kind(data: bytes) -> str:
    if data.startswith(b"%PDF"):
        return tr("It is a PDF, and only text can be attached.")
    if data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")):
        return tr("It is a picture or a recording, and only text can be attached.")
    if data.startswith(_ZIP):
        return tr("It is an archive or an office document, and only text can be attached.")
    return tr("It is not a text, or a text in an encoding that cannot be told with certainty.")


def _may_hold_chats(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".zip"):
        return False
    try:
        with open_to_read(path) as file:
            start = file.read(_LOOK_BYTES)
    except OSError:
        return False  # reading it says what is wrong
    return start.startswith(_ZIP) or any(sign in start for sign in _CHAT_SIGNS)
