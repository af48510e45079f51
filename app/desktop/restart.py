"""Starts the program again, as it was started, when this one has ended."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence

log = logging.getLogger(__name__)


def command_again(original: Sequence[str], executable: str, files: Sequence[str]) -> list[str]:
    """The command that started this program, without the files that it was to import."""
    arguments = list(original[1:])
    for file in reversed(files):
        if file in arguments:
            del arguments[len(arguments) - 1 - arguments[::-1].index(file)]
    return [executable, *arguments]


def start_again(files: Sequence[str]) -> None:
    """Start another process that outlives this one."""
    command = command_again(sys.orig_argv, sys.executable, files)
    log.info("starting again")
    try:
        subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
    except OSError as error:
        log.error("could not start again: %s", error)
