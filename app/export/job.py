"""Write chats to a file: one as it is, several into a zip. Runs in a thread of its own; no widgets."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.export.kinds import ExportKind, content
from app.export.names import free_path, suggested_name
from app.export.options import ExportOptions
from app.i18n import tr, tr_count
from app.storage.rows import Conversation, MessageRow
from engine.files import replacing, write_atomically
from engine.progress import CancelToken, Progress, ProgressCallback

ARCHIVE_SUFFIX = ".zip"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of a file's time in a zip

Read = Callable[[int], tuple[Conversation, Sequence[MessageRow]]]


@dataclass(frozen=True)
class ExportJob:
    """What to write where. Without `replace` an existing file stays, and a free name beside it is taken."""

    chats: tuple[int, ...]
    path: Path
    kind: ExportKind
    options: ExportOptions
    archive: bool = False
    replace: bool = False


def file_name(title: str, kind: ExportKind) -> str:
    """What the file of one chat is called."""
    return suggested_name(title, kind.suffix)


def archive_name(now: datetime) -> str:
    """What the file of several chats is called."""
    return suggested_name(tr("Fiddler Chat {date}", date=f"{now:%Y-%m-%d}"), ARCHIVE_SUFFIX)


def run_export(job: ExportJob, read: Read, report: ProgressCallback, cancel: CancelToken) -> Path:
    """Write the file and return its path. `read` gives a chat with all versions of its messages.

    Raises `FileError`, `StorageError`, `Cancelled`: then nothing was written, and an older file is as it was.
    """
    path = job.path if job.replace else free_path(job.path.parent, job.path.name)
    if not job.archive:
        report(Progress(tr("The chat is being exported.")))
        write_atomically(path, _content(job, *read(job.chats[0]), cancel))
        return path
    taken: set[str] = set()
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, chat_id in enumerate(job.chats):
            cancel.raise_if_cancelled()
            conversation, messages = read(chat_id)
            what = tr("Exporting “{title}”", title=conversation.title)
            report(Progress(what, number, len(job.chats), tr("chats")))
            entry = zipfile.ZipInfo(_free_name(conversation, job.kind, taken), _time(conversation.updated))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, _content(job, conversation, messages, cancel))
    return path


def saved_words(job: ExportJob, path: Path) -> str:
    """What to tell the user when it is done."""
    if not job.archive:
        return tr("The chat was saved as {path}.", path=path)
    return tr_count(
        "{count} chat was saved in {path}.", "{count} chats were saved in {path}.", len(job.chats), path=path
    )


def _content(
    job: ExportJob, conversation: Conversation, messages: Sequence[MessageRow], cancel: CancelToken
) -> bytes:
    return content(conversation, messages, job.kind, job.options, cancel.raise_if_cancelled)


def _free_name(conversation: Conversation, kind: ExportKind, taken: set[str]) -> str:
    """A name that no other file in the archive has, also where case does not count."""
    name = file_name(conversation.title, kind)
    stem, number = name.removesuffix(kind.suffix), 2
    while name.casefold() in taken:
        name = f"{stem} ({number}){kind.suffix}"
        number += 1
    taken.add(name.casefold())
    return name


def _time(moment: datetime) -> tuple[int, int, int, int, int, int]:
    local = moment.astimezone()
    time = (local.year, local.month, local.day, local.hour, local.minute, local.second)
    return max(_EARLIEST, time) if local.year < 2107 else _EARLIEST
