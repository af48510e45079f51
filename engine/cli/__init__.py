"""The `fiddler` command: everything the engine can do, without a window."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from engine.cli import bench, calibrate, generate, hardware, plan, transcode
from engine.cli.console import Console, OutputError, open_closed_streams
from engine.errors import Cancelled, EngineError, ShortageError
from engine.progress import CancelToken
from engine.version import version

FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
_COMMANDS = (hardware, plan, calibrate, generate, bench, transcode)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status.

    0: done; 1: an error, told on stderr; 2: wrong arguments; 130: interrupted with Ctrl-C; 141: whoever read
    the output went away.
    """
    open_closed_streams()
    parser = _parser()
    parsed = parser.parse_args(arguments)
    console = Console(json=parsed.json, quiet=parsed.quiet)
    try:
        parsed.check(parsed)
    except EngineError as error:
        parsed.parser.error(str(error))
    cancel = CancelToken()
    try:
        with _interruptible(cancel):
            status: int = parsed.run(parsed, console, cancel)
            console.flush()
    except (Cancelled, KeyboardInterrupt):
        console.say("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        console.abandon_output()
        return PIPE_CLOSED
    except EngineError as error:
        console.error(error)
        if isinstance(error, ShortageError):
            console.say("  To go on anyway, add --force.")
        if isinstance(error, OutputError):
            console.abandon_output()  # what is left in the buffer cannot be written either
        return FAILED
    return INTERRUPTED if cancel.cancelled else status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fiddler",
        description="Run Mixture-of-Experts models that are larger than the graphics card.",
        epilog="Results go to stdout, everything else to stderr.",
    )
    parser.add_argument("--version", action="version", version=f"fiddler {version()}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return parser


@contextmanager
def _interruptible(cancel: CancelToken) -> Iterator[None]:
    """Ctrl-C once asks to stop, which keeps what is done; twice ends at once."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        if cancel.cancelled:
            raise KeyboardInterrupt
        cancel.cancel()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
