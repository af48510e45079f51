"""Keeping the computer awake, one small class for each system. The screen may go dark all the same."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol

log = logging.getLogger(__name__)

_PATIENCE_S = 0.5  # with a program that is to end


class Awake(Protocol):
    """`hold` and `release` are called in turn, from the GUI's thread; they never fail and hardly wait."""

    def hold(self, reason: str) -> None:
        """The computer is not to fall asleep by itself from now on."""

    def release(self) -> None:
        """It may again."""


class NoAwake:
    """For systems that offer nothing."""

    def hold(self, reason: str) -> None:
        """Do nothing."""

    def release(self) -> None:
        """Do nothing."""


class Bus(Protocol):
    """A connection to the desktop's message bus that nothing else uses."""

    def call(self, service: str, path: str, interface: str, method: str, *texts: str) -> None:
        """Call a method with strings; whether it worked, is told later."""

    def close(self) -> None:
        """Leave the bus, which ends everything that was asked for."""


Answered = Callable[[bool], None]
ConnectBus = Callable[[Answered], Bus]


class LinuxAwake:
    """Asks the desktop's services, the one that leaves the screen alone first.

    Letting go means leaving the bus: the services watch for that, as they must for programs that crash. So
    whatever they answered need not be known.
    """

    SERVICES = (
        ("org.freedesktop.PowerManagement", "/org/freedesktop/PowerManagement/Inhibit", ".Inhibit"),
        ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", ""),
    )

    def __init__(self, connect: ConnectBus) -> None:
        self._connect = connect
        self._bus: Bus | None = None
        self._left: list[tuple[str, str, str]] = []
        self._reason = ""
        self._holds = 0  # so far: answers to an earlier one count no more

    def hold(self, reason: str) -> None:
        """Ask the first service."""
        self._reason = reason
        self._left = list(self.SERVICES)
        self._holds += 1
        self._bus = self._connect(partial(self._on_answer, self._holds))
        self._ask_next()

    def release(self) -> None:
        """Leave the bus."""
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()

    def _on_answer(self, hold: int, worked: bool) -> None:
        if not worked and hold == self._holds:
            self._ask_next()

    def _ask_next(self) -> None:
        if self._bus is None:
            return
        if not self._left:
            log.info("this desktop has no service that keeps the computer awake")
            return
        service, path, suffix = self._left.pop(0)
        self._bus.call(service, path, f"{service}{suffix}", "Inhibit", "fiddler-chat", self._reason)


class WindowsAwake:
    """Sets the state of the GUI's thread; Windows forgets it when the thread ends."""

    CONTINUOUS, SYSTEM_REQUIRED = 0x80000000, 0x00000001

    def __init__(self, set_state: Callable[[int], object]) -> None:
        self._set_state = set_state

    def hold(self, reason: str) -> None:
        """Say that the system is needed; the display is not."""
        self._set_state(self.CONTINUOUS | self.SYSTEM_REQUIRED)

    def release(self) -> None:
        """Nothing is needed any more."""
        self._set_state(self.CONTINUOUS)


class MacAwake:
    """Runs `caffeinate`, which ends by itself with this process."""

    def __init__(self, start: Callable[[list[str]], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None

    def hold(self, reason: str) -> None:
        """Start it; -i is about idle sleep, and lets the display go dark."""
        try:
            self._process = self._start(["/usr/bin/caffeinate", "-i", "-w", str(os.getpid())])
        except OSError as error:
            log.warning("the computer may fall asleep: %s", error)

    def release(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def awake_here() -> Awake:
    """What this computer's system offers."""
    if sys.platform == "win32":
        import ctypes

        return WindowsAwake(ctypes.windll.kernel32.SetThreadExecutionState)
    if sys.platform == "darwin":
        return MacAwake(subprocess.Popen)
    try:
        from app.desktop.session_bus import SessionBus
    except ImportError as error:  # a Qt without D-Bus
        log.info("no message bus: %s", error)
        return NoAwake()
    return LinuxAwake(SessionBus)
