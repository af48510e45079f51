"""The small shared widgets: progress, elided paths, work in the background."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QObject, QThread, QThreadPool
from PySide6.QtWidgets import QApplication

from app.errors import UnexpectedError
from app.theme import theme
from app.widgets.amount_bar import AmountBar
from app.widgets.background import Background
from app.widgets.curve_plot import CurvePlot
from app.widgets.elided import ElidedText
from app.widgets.labels import TextLabel
from app.widgets.progress import LabelledProgress
from engine.errors import EngineError, HardwareError
from engine.progress import Progress

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


def test_progress_of_more_bytes_than_an_int_holds(qtbot: QtBot) -> None:
    times = iter(range(100))
    widget = LabelledProgress(clock=lambda: float(next(times)))
    qtbot.addWidget(widget)
    for done in (0, 20, 40, 60):
        widget.show_progress(Progress("Downloading", done * 1e9, 80e9, "B"))
    assert widget.bar.value() == 750
    assert widget.what.text() == "Downloading"
    assert widget.details.text() == "55.9 GiB of 74.5 GiB · 18.6 GiB per second · a few seconds left"
    assert "55.9 GiB" in widget.bar.accessibleDescription()


def test_progress_without_a_total_moves_to_and_fro(qtbot: QtBot) -> None:
    widget = LabelledProgress()
    qtbot.addWidget(widget)
    widget.start("Starting")
    assert (widget.bar.minimum(), widget.bar.maximum()) == (0, 0)
    widget.show_progress(Progress("Reading", 1, 2))
    assert widget.bar.maximum() > 0


def test_a_long_path_keeps_its_ends_and_its_whole_self_in_the_tool_tip(qtbot: QtBot) -> None:
    path = "/a/rather/long/folder/name" * 8 + "/model"
    label = ElidedText(path, middle=True)
    qtbot.addWidget(label)
    label.resize(200, 20)
    assert len(label.shown_text()) < len(path)
    assert label.shown_text().startswith("/a/")
    assert label.shown_text().endswith("model")
    assert label.toolTip() == label.text() == path


def test_labels_follow_the_programs_font(qtbot: QtBot) -> None:
    label = TextLabel("x", scale=2.0)
    qtbot.addWidget(label)
    try:
        theme().apply("light", 20)
        assert label.font().pointSizeF() == pytest.approx(40)
    finally:
        theme().apply("light")
        QApplication.processEvents()
    assert label.font().pointSizeF() == pytest.approx(2 * QApplication.font().pointSizeF())


@pytest.mark.parametrize("amounts", [(), (1.0,), (5.0, 5.0, 5.0)])
def test_bars_and_plots_paint_anything(qtbot: QtBot, amounts: tuple[float, ...]) -> None:
    bar = AmountBar()
    qtbot.addWidget(bar)
    bar.set_amounts(amounts, 10, "so much")
    assert not bar.grab().isNull()
    plot = CurvePlot()
    qtbot.addWidget(plot)
    plot.set_curves({"CPU": [(1, 0.1), (64, 0.4)][: len(amounts)], "GPU": []})
    assert not plot.grab().isNull()
    plot.set_curves({"CPU": [(1, 0.0)]})  # too fast to be measured
    assert not plot.grab().isNull()


class TestBackground:
    def test_answers_in_the_gui_thread(self, qtbot: QtBot) -> None:
        owner = QObject()
        answers: list[tuple[object, QThread]] = []
        background = Background[int]("Counting", owner)
        threads: list[QThread] = []

        def work() -> int:
            threads.append(QThread.currentThread())
            return 42

        background.run(work, lambda n: answers.append((n, QThread.currentThread())), pytest.fail)
        assert background.busy
        qtbot.waitUntil(lambda: bool(answers))
        assert answers == [(42, owner.thread())]
        assert threads[0] is not owner.thread()
        assert not background.busy

    def test_passes_an_error_on(self, qtbot: QtBot) -> None:
        owner = QObject()
        problems: list[EngineError] = []
        error = HardwareError("No.")

        def work() -> int:
            raise error

        Background[int]("Counting", owner).run(work, pytest.fail, problems.append)
        qtbot.waitUntil(lambda: bool(problems))
        assert problems == [error]

    def test_turns_a_fault_into_a_message(self, qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
        owner = QObject()
        problems: list[EngineError] = []
        with caplog.at_level(logging.CRITICAL, logger="app.widgets.background"):
            Background[float]("Counting", owner).run(lambda: 1 / 0, pytest.fail, problems.append)
            qtbot.waitUntil(lambda: bool(problems))
        assert isinstance(problems[0], UnexpectedError)

    def test_only_the_latest_request_is_answered(self, qtbot: QtBot) -> None:
        owner = QObject()
        gate = threading.Event()
        answers: list[int] = []
        background = Background[int]("Counting", owner)

        def slow() -> int:
            gate.wait(5)
            return 1

        background.run(slow, answers.append, pytest.fail)
        background.run(lambda: 2, answers.append, pytest.fail)
        qtbot.waitUntil(lambda: bool(answers))
        gate.set()
        QThreadPool.globalInstance().waitForDone(5000)
        qtbot.wait(50)
        assert answers == [2]

    def test_the_asker_may_be_gone(self, qtbot: QtBot) -> None:
        gate = threading.Event()
        owner = QObject()
        Background[bool]("Counting", owner).run(lambda: gate.wait(5), pytest.fail, pytest.fail)
        owner.deleteLater()
        qtbot.wait(20)
        gate.set()
        QThreadPool.globalInstance().waitForDone(5000)
        qtbot.wait(20)


def test_a_font_that_was_scaled_later_survives_another_theme(qtbot: QtBot) -> None:
    label = TextLabel("x")
    qtbot.addWidget(label)
    theme().apply("light")
    label.show()  # styled for the first time
    theme().scale_font(label, 2.0)
    try:
        theme().apply("dark")
        assert label.font().pointSizeF() == pytest.approx(2 * QApplication.font().pointSizeF())
    finally:
        theme().apply("light")
