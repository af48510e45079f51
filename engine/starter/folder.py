"""Make a folder so that it appears under its name complete or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from engine.files import file_error

_MARK = ".partial-"


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a temporary folder beside `target` and rename it to `target` at the end, replacing what is there.

    After an exception nothing has changed. Raises `FileError` where the file system refuses, with cause and
    action.
    """
    with scratch_folder(target) as work:
        yield work
        _replace(work, target)


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder beside `target`, named after it and this process, and remove it at the end.

    Ones that a killed process left are removed first. Raises `FileError` as `new_folder`.
    """
    work = target.with_name(f"{target.name}{_MARK}{os.getpid()}")
    try:
        work.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_over(target)
        work.mkdir()
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise file_error(f"The folder “{target.name}” could not be made.", target, error) from error


def _replace(work: Path, target: Path) -> None:
    """Give `work` the name `target`; if that fails, what had it keeps it.

    A folder cannot be renamed onto one that is not empty.
    """
    if target.exists():
        old = target.with_name(f"{work.name}-old")
        target.rename(old)
        try:
            work.rename(target)
        except BaseException:
            old.rename(target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    else:
        work.rename(target)


def _remove_left_over(target: Path) -> None:
    for path in target.parent.glob(f"{target.name}{_MARK}*"):
        owner = path.name.removeprefix(f"{target.name}{_MARK}").removesuffix("-old")
        if not owner.isdecimal() or int(owner) == os.getpid() or not psutil.pid_exists(int(owner)):
            shutil.rmtree(path, ignore_errors=True)
