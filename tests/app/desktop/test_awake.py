from __future__ import annotations

import subprocess
import sys

import pytest

from app.desktop.awake import Answered, LinuxAwake, MacAwake, WindowsAwake


class FakeBus:
    """A desktop with some services; what they were asked for ends with the connection."""

    def __init__(self, desktop: FakeDesktop, answered: Answered) -> None:
        self.desktop, self.answered = desktop, answered
        self.calls: list[tuple[str, ...]] = []
        self.closed = False

    def call(self, service: str, path: str, interface: str, method: str, *texts: str) -> None:
        self.calls.append((service, path, interface, method, *texts))
        works = service in self.desktop.services
        if works:
            self.desktop.held.append(self)
        self.desktop.answers.append(lambda: self.answered(works))

    def close(self) -> None:
        self.closed = True
        self.desktop.held = [bus for bus in self.desktop.held if bus is not self]


class FakeDesktop:
    def __init__(self, *services: str) -> None:
        self.services = services
        self.held: list[FakeBus] = []
        self.answers: list[object] = []
        self.buses: list[FakeBus] = []

    def connect(self, answered: Answered) -> FakeBus:
        self.buses.append(FakeBus(self, answered))
        return self.buses[-1]

    def answer(self) -> None:
        while self.answers:
            answer = self.answers.pop(0)
            assert callable(answer)
            answer()


POWER, SCREEN = "org.freedesktop.PowerManagement", "org.freedesktop.ScreenSaver"


def test_the_service_that_leaves_the_screen_alone_is_asked_first() -> None:
    desktop = FakeDesktop(POWER, SCREEN)
    awake = LinuxAwake(desktop.connect)
    awake.hold("working")
    desktop.answer()
    assert desktop.buses[0].calls == [
        (
            POWER,
            "/org/freedesktop/PowerManagement/Inhibit",
            f"{POWER}.Inhibit",
            "Inhibit",
            "fiddler-chat",
            "working",
        )
    ]
    assert len(desktop.held) == 1
    awake.release()
    assert desktop.held == []


def test_the_other_is_asked_where_there_is_no_such_service() -> None:
    desktop = FakeDesktop(SCREEN)
    awake = LinuxAwake(desktop.connect)
    for _ in range(2):
        awake.hold("working")
        desktop.answer()
        assert len(desktop.held) == 1
        awake.release()
        assert desktop.held == []
    assert all(bus.closed for bus in desktop.buses)


def test_a_desktop_without_services_is_asked_once_each() -> None:
    desktop = FakeDesktop()
    awake = LinuxAwake(desktop.connect)
    awake.hold("working")
    desktop.answer()
    assert [call[0] for call in desktop.buses[0].calls] == [POWER, SCREEN]
    awake.release()


def test_answers_that_come_late_ask_for_nothing_more() -> None:
    desktop = FakeDesktop(SCREEN)
    awake = LinuxAwake(desktop.connect)
    awake.hold("working")
    awake.release()
    desktop.answer()
    assert desktop.held == []
    awake.hold("again")
    late, *_ = desktop.buses
    late.answered(False)
    assert len(desktop.buses[1].calls) == 1
    awake.release()


def test_windows_is_told_that_the_system_is_needed_and_then_no_more() -> None:
    states: list[int] = []
    awake = WindowsAwake(states.append)
    awake.hold("working")
    awake.release()
    assert states == [0x80000001, 0x80000000]


def test_the_macs_program_is_started_and_ended() -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        assert command[:3] == ["/usr/bin/caffeinate", "-i", "-w"]
        started.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
        return started[-1]

    awake = MacAwake(start)
    awake.hold("working")
    assert started[0].poll() is None
    awake.release()
    assert started[0].poll() is not None
    assert started[0].stdin is not None
    started[0].stdin.close()


def test_a_macs_program_that_does_not_end_holds_up_nothing() -> None:
    class Stuck:
        """Ends only when it is killed."""

        killed = False

        def terminate(self) -> None:
            pass

        def kill(self) -> None:
            self.killed = True

        def wait(self, timeout: float | None = None) -> int:
            if not self.killed:
                raise subprocess.TimeoutExpired("caffeinate", timeout or 0)
            return -9

    stuck = Stuck()
    awake = MacAwake(lambda _: stuck)  # type: ignore[arg-type,return-value]
    awake.hold("working")
    awake.release()
    assert stuck.killed


def test_a_mac_without_the_program_goes_on_and_notes_it(caplog: pytest.LogCaptureFixture) -> None:
    tried: list[str] = []

    def start(command: list[str]) -> subprocess.Popen[bytes]:
        tried.append(command[0])
        raise FileNotFoundError(command[0])

    awake = MacAwake(start)
    awake.hold("working")
    awake.release()
    awake.hold("working")  # it may have been installed meanwhile
    assert tried == ["/usr/bin/caffeinate"] * 2
    assert [record.getMessage() for record in caplog.records] == [
        "the computer may fall asleep: /usr/bin/caffeinate"
    ] * 2
