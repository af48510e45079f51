from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import psutil
import pytest
from PySide6.QtCore import QObject, QThreadPool, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.panel.machine import GpuReader, GpuReading, MachineReader, MachineReading, Use, read_ram
from app.panel.machine_section import MachineSection
from app.panel.sampler import INTERVAL_MS, PATIENCE, Sampler
from tests.app.fakes import make_status

GIB = 2**30
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


class NVMLError(Exception):
    pass


class Nvml:
    """A driver that counts its starts; `refuses` names what it does not tell."""

    NVMLError = NVMLError
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *, works: bool = True, refuses: tuple[str, ...] = ()) -> None:
        self.works, self.refuses, self.starts = works, refuses, 0

    def nvmlInit(self) -> None:
        self.starts += 1
        if not self.works:
            raise NVMLError("no driver")

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:
        self._may("memory")
        return SimpleNamespace(total=24 * GIB, used=(10 + handle) * GIB)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        self._may("load")
        return SimpleNamespace(gpu=83)

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        self._may("temperature")
        return 61

    def _may(self, name: str) -> None:
        if name in self.refuses:
            raise NVMLError("not supported")


def test_ram_readings_are_of_this_machine() -> None:
    use = read_ram(psutil.Process())
    assert use.ours is not None
    assert 0 < use.ours <= use.used <= use.total


def test_loads_are_of_the_time_between_two_looks() -> None:
    read = MachineReader()
    assert read(None).cpu_load is None
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        sum(range(1000))
    reading = read(None)
    assert reading.cpu_load is not None
    assert reading.our_load is not None
    assert 0 < reading.our_load <= reading.cpu_load <= 1
    assert reading.gpu is None


def test_the_graphics_card_is_asked_through_nvml() -> None:
    nvml = Nvml()
    reader = GpuReader(nvml)
    assert reader.read(0) == GpuReading(Use(24 * GIB, 10 * GIB), 0.83, 61)
    assert reader.read(1) == GpuReading(Use(24 * GIB, 11 * GIB), 0.83, 61)
    assert nvml.starts == 1


@pytest.mark.parametrize("refused", ["memory", "load", "temperature"])
def test_what_the_card_does_not_tell_is_left_out(refused: str) -> None:
    reading = GpuReader(Nvml(refuses=(refused,))).read(0)
    assert reading is not None
    assert {name for name, value in vars(reading).items() if value is None} == {refused}


def test_a_missing_driver_is_no_error_and_is_asked_once() -> None:
    nvml = Nvml(works=False)
    reader = GpuReader(nvml)
    assert reader.read(0) is None
    assert reader.read(0) is None
    assert nvml.starts == 1
    assert MachineReader(Nvml(works=False))(0).gpu is None


class Reader:
    """Readings with their times and threads."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.threads: set[int] = set()
        self.wait = threading.Event()
        self.wait.set()

    def __call__(self, gpu_index: int | None) -> MachineReading:
        self.times.append(time.monotonic())
        self.threads.add(threading.get_ident())
        self.wait.wait(10)
        return MachineReading(Use(1, 1))


@pytest.fixture
def owner(qtbot: QtBot) -> QObject:
    return QObject()


def test_the_machine_is_read_off_the_gui_thread_and_rarely(qtbot: QtBot, owner: QObject) -> None:
    assert INTERVAL_MS >= 500
    reader = Reader()
    sampler = Sampler(reader, owner)
    started = time.monotonic()
    for _ in range(5):
        sampler.start()
    qtbot.waitUntil(lambda: len(reader.times) == 2)
    assert reader.times[1] - started > 0.8 * INTERVAL_MS / 1000  # Qt's timer may be early by a twentieth
    assert threading.get_ident() not in reader.threads
    sampler.stop()
    assert not sampler.running
    assert not any(timer.isActive() for timer in sampler.findChildren(QTimer))


def test_a_slow_driver_is_not_asked_again_meanwhile(qtbot: QtBot, owner: QObject) -> None:
    reader = Reader()
    reader.wait.clear()
    told: list[MachineReading] = []
    sampler = Sampler(reader, owner)
    sampler.sampled.connect(told.append)
    sampler.start()
    qtbot.waitUntil(lambda: len(reader.times) == 1)
    sampler._sample()
    sampler._sample()
    sampler.stop()
    reader.wait.set()
    assert QThreadPool.globalInstance().waitForDone(5000)
    QApplication.processEvents()
    assert len(reader.times) == 1
    assert told == []  # it was stopped meanwhile


def test_a_reading_that_fails_is_one_look_less(qtbot: QtBot, owner: QObject) -> None:
    calls: list[None] = []

    def read(gpu_index: int | None) -> MachineReading:
        calls.append(None)
        if len(calls) == 1:
            raise OSError("no /proc")
        return MachineReading(Use(1, 1))

    sampler = Sampler(read, owner)
    with qtbot.waitSignal(sampler.sampled, timeout=5000):
        sampler.start()
    sampler.stop()


def test_a_system_that_never_answers_is_left_alone(qtbot: QtBot, owner: QObject) -> None:
    calls: list[None] = []

    def read(gpu_index: int | None) -> MachineReading:
        calls.append(None)
        raise OSError("no /proc")

    sampler = Sampler(read, owner)
    sampler.start()
    for number in range(1, PATIENCE):
        qtbot.waitUntil(lambda done=number: sampler._failures == done)
        sampler._sample()
    qtbot.waitUntil(lambda: not sampler.running)
    sampler.start()
    assert not sampler.running
    assert len(calls) == PATIENCE


def test_the_section_tells_loads_and_heat_in_words(qtbot: QtBot) -> None:
    section = MachineSection()
    qtbot.addWidget(section)
    gpu = GpuReading(Use(24 * GIB, 10 * GIB), 0.83, 61)
    section.show_reading(MachineReading(Use(16 * GIB, 6 * GIB, 2 * GIB), 0.75, 0.5, gpu))
    assert (section.cpu.text, section.vram.isHidden()) == ("75%", True)
    section.show_status(make_status(gpu_index=0, vram_used=3 * GIB))
    assert not section.vram.isHidden()
    assert section.vram.text == "10.0 GiB of 24.0 GiB"
    assert "This program: 3.0 GiB" in section.vram.toolTip()
    assert section.gpu.text == "83% · 61 °C"
    section.show_reading(MachineReading(Use(16 * GIB, 6 * GIB, 2 * GIB), gpu=GpuReading(temperature=40)))
    assert (section.vram.text, section.gpu.text) == ("Not known", "Not known · 40 °C")
