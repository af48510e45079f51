"""What goes where: the result on stdout, everything else on stderr."""

from __future__ import annotations

import io
import json as json_format
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.errors import EngineError, FileError
from engine.progress import Progress
from engine.units import format_bytes

_REDRAW = 0.1  # seconds between two states of the progress line


def open_closed_streams() -> None:
    """Give a process that was started without stdin, stdout or stderr (`2>&-`, some services) empty ones.

    Python has None there; and the next file that is opened would take the stream's number.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


class OutputError(FileError):
    """Stdout does not take the result."""


class Console:
    """Writes a command's output. With `json`, stdout carries one JSON object; `quiet` leaves progress out."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        self.json = json
        self._quiet = quiet
        self._on_terminal = sys.stderr.isatty()
        self._line = ""  # the progress line on the terminal
        self._drawn = 0.0
        self._what = ""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # an old code page cannot stop an answer
                stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")

    def write(self, text: str) -> None:
        """A part of the result, at once."""
        self._clear_line()
        with _explained():
            sys.stdout.write(text)
            sys.stdout.flush()

    def result(self, data: dict[str, Any], lines: tuple[str, ...] = ()) -> None:
        """The whole result: `data` with --json, else `lines`."""
        if self.json:
            self.write(json_format.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
        else:
            self.write("".join(f"{line}\n" for line in lines))

    def say(self, text: str) -> None:
        """A line beside the result."""
        self._clear_line()
        print(text, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """A line beside the result that --quiet leaves out."""
        if not self._quiet:
            self.say(text)

    def error(self, error: EngineError) -> None:
        """What happened, why, and what to do, each on a line of its own."""
        self.say(f"fiddler: {error.what}")
        if error.why:
            self.say(f"  Why: {error.why}")
        if error.action:
            self.say(f"  What to do: {error.action}")

    def progress(self, progress: Progress) -> None:
        """A long operation's progress: a line that changes on a terminal, else one line per stage."""
        if self._quiet:
            return
        new_stage = progress.what != self._what
        self._what = progress.what
        if not self._on_terminal:
            if new_stage:
                self.say(f"{progress.what} …")
            return
        now = time.monotonic()
        if new_stage or now - self._drawn >= _REDRAW or (progress.total and progress.done >= progress.total):
            self._drawn = now
            self._clear_line()
            self._line = progress_text(progress)
            sys.stderr.write(self._line)
            sys.stderr.flush()

    def flush(self) -> None:
        """Bring everything out; the progress line goes away."""
        self._clear_line()
        with _explained():
            sys.stdout.flush()

    def abandon_output(self) -> None:
        """Nobody reads stdout any more: let the interpreter's last flush go nowhere."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)

    def _clear_line(self) -> None:
        if self._line:
            sys.stderr.write("\r" + " " * len(self._line) + "\r")
            sys.stderr.flush()
            self._line = ""


@contextmanager
def _explained() -> Iterator[None]:
    """What the system says about stdout, in the user's words; a reader that went away is another matter."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            "The result could not be written.",
            why=f"The system reported: {error.strerror or error}.",
            action="Check where the output goes: the disk may be full.",
        ) from error


def progress_text(progress: Progress) -> str:
    """A progress report in one short line: "Loading experts: 120 of 240 experts (50%)"."""
    if not progress.total:
        return f"{progress.what} …"
    share = f"{progress.done / progress.total:.0%}"
    if progress.unit in ("bytes", "B"):
        return f"{progress.what}: {format_bytes(progress.done)} of {format_bytes(progress.total)} ({share})"
    return f"{progress.what}: {progress.done:.0f} of {progress.total:.0f} {progress.unit} ({share})"
