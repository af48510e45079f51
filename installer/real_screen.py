"""A real X screen without a monitor, and a person's hands on it: Xvfb, and xdotool for the keyboard."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Screen:
    """An X display on which windows can be looked for and keys pressed."""

    def __init__(self, name: str) -> None:
        self.environment = {**os.environ, "DISPLAY": name, "QT_QPA_PLATFORM": "xcb"}

    def _xdotool(self, *words: str) -> str:
        done = subprocess.run(
            ["xdotool", *words], env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    def window(self, title: str) -> str | None:
        """The id of a visible window whose title contains `title` (a regular expression), or None."""
        return next(iter(self._xdotool("search", "--onlyvisible", "--name", title).split()), None)

    def wait_for_window(self, title: str, seconds: float) -> str:
        """The id of such a window as soon as there is one, with the keyboard focus in it."""
        found = wait_until(lambda: self.window(title), seconds, f"a window called {title!r}")
        self._xdotool("windowfocus", "--sync", found)
        return found

    def press(self, *keys: str) -> None:
        """Press keys one after the other, in the window that has the focus."""
        for key in keys:
            self._xdotool("key", "--clearmodifiers", key)

    def type(self, text: str) -> None:
        """Type a text as a person would."""
        self._xdotool("type", "--delay", "20", text)


def wait_until(look: Callable[[], T | None], seconds: float, what: str) -> T:
    """What `look` returns once it is not None; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


@contextmanager
def real_screen(width: int = 1400, height: int = 900) -> Iterator[Screen]:
    """An Xvfb on a free display for as long as the block runs."""
    read_end, write_end = os.pipe()
    command = [
        "Xvfb",
        "-displayfd",
        str(write_end),
        "-screen",
        "0",
        f"{width}x{height}x24",
        "-nolisten",
        "tcp",
    ]
    server = subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        with os.fdopen(read_end) as numbers:
            yield Screen(f":{numbers.readline().strip()}")
    finally:
        server.terminate()
        server.wait(timeout=10)
