"""Read files with chats: finds out whose they are, and keeps apart what can be taken and what not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from app.i18n import tr
from app.importing.chatgpt import is_chatgpt, read_chatgpt
from app.importing.errors import ImportFileError, UnreadableError
from app.importing.json_stream import values_in
from app.importing.our_json import is_ours, read_ours
from app.importing.outcome import Contents, LeftOut, Refused
from app.importing.sources import Source, sources, unreadable
from app.storage.incoming import IncomingChat
from engine.progress import CancelToken, ProgressCallback

_NAME_CHARACTERS = 60


def read_files(paths: Sequence[Path], report: ProgressCallback, cancel: CancelToken) -> Contents:
    """The chats in the files, each once. Nothing is saved.

    Raises `ImportFileError` if there is no chat in any of them, `Cancelled`.
    """
    contents = Contents()
    error: ImportFileError | None = None
    for path in paths:
        try:
            _read_file(path, contents, report, cancel)
        except ImportFileError as trouble:
            error = trouble
            contents.refused.append(Refused(path.name, trouble.why.rstrip(".")))
    if not contents.chats:
        raise _nothing(paths, contents, error)
    contents.chats = list(_once(contents.chats, contents.refused))
    return contents


def _read_file(path: Path, contents: Contents, report: ProgressCallback, cancel: CancelToken) -> None:
    for source in sources(path, report, cancel):
        found = Contents()
        try:
            for number, value in enumerate(values_in(source.blocks), 1):
                cancel.raise_if_cancelled()
                _read_value(value, source, number, found)
        except UnreadableError as error:
            # A text that is damaged anywhere is not trusted in its other parts either.
            if source.required:
                raise unreadable(path, _reason(path, source.name, str(error))) from error
            contents.refused.append(Refused(source.name, str(error)))
            continue
        contents.chats += found.chats
        contents.refused += found.refused
        contents.left_out += found.left_out


def _read_value(value: Any, source: Source, number: int, found: Contents) -> None:
    name = _name(value, source, number)
    left_out: Counter[LeftOut] = Counter()
    try:
        if is_ours(value):
            found.chats.append(read_ours(value))
        elif is_chatgpt(value):
            found.chats.append(read_chatgpt(value, left_out))
        else:
            raise UnreadableError(tr("it is not a chat"))
    except UnreadableError as error:
        found.refused.append(Refused(name, str(error)))
    found.left_out += left_out


def _name(value: Any, source: Source, number: int) -> str:
    head = value.get("conversation", value) if isinstance(value, dict) else None
    title = head.get("title") if isinstance(head, dict) else None
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())[:_NAME_CHARACTERS]
    return source.name if number == 1 else tr("{name}, part {number}", name=source.name, number=number)


def _once(chats: Iterable[IncomingChat], refused: list[Refused]) -> Iterable[IncomingChat]:
    seen: list[IncomingChat] = []
    known: dict[object, list[IncomingChat]] = {}
    for chat in chats:
        same = known.setdefault((chat.created, len(chat.messages)), [])
        if chat in same:
            refused.append(Refused(chat.title, tr("it is there twice")))
            continue
        same.append(chat)
        seen.append(chat)
    return seen


def _reason(path: Path, name: str, why: str) -> str:
    """Why nothing can be taken from a file, as a sentence; a part of it is named, the file is so already."""
    if name == path.name:
        return f"{why[:1].upper()}{why[1:]}."
    return tr("“{name}”: {why}.", name=name, why=why)


def _nothing(paths: Sequence[Path], contents: Contents, error: ImportFileError | None) -> ImportFileError:
    if error is not None and len(paths) == 1:
        return error
    if len(contents.refused) == 1:
        refused = contents.refused[0]
        return unreadable(paths[0], _reason(paths[0], refused.name, refused.why))
    if len(paths) == 1:
        return unreadable(paths[0], tr("There are no chats in it that can be read."))
    return ImportFileError(
        tr("None of the files could be imported. Your chats are unchanged."),
        why="; ".join(f"{refused.name}: {refused.why}" for refused in contents.refused[:5]),
        action=tr("Choose files that Fiddler Chat exported as JSON, or exports of ChatGPT."),
    )
