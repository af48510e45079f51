"""The `fiddler` command, and `python -m engine`."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def run() -> int:
    """Run one command; returns the exit status, see `engine.cli.main`."""
    try:
        from engine.cli import main  # takes a moment, in which Ctrl-C is no fault that needs a traceback

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
