"""Texts that nobody waits for: they give way to everything else, and nobody hears of them unless they end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.worker import EngineWorker
from engine.events import FinishReason
from engine.options import LoadOptions
from engine.params import GenerationParams, Message
from tests.app.fakes import ScriptedFactory, shortage

MESSAGES = [Message("user", "What is the capital of France?")]


def ask_aside(qtbot: QtBot, worker: EngineWorker, factory: ScriptedFactory) -> None:
    """Begin an aside that never ends by itself."""
    factory.gate = threading.Event()
    worker.generate_aside(1, MESSAGES, GenerationParams())
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)


def test_its_text_comes_whole_at_the_end(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    pieces: list[str] = []
    loaded_worker.text.connect(lambda _number, text: pieces.append(text))
    with qtbot.waitSignal(loaded_worker.aside_finished) as told:
        loaded_worker.generate_aside(7, MESSAGES, GenerationParams())
        assert loaded_worker.idle
    assert told.args == [7, "Paris is the capital.", FinishReason.EOS]
    assert not pieces


@pytest.mark.parametrize(
    "other",
    [
        lambda worker: worker.generate(2, MESSAGES, GenerationParams()),
        lambda worker: worker.load(Path("/models/other"), LoadOptions()),
        lambda worker: worker.calibrate(),
        lambda worker: worker.cancel(),
        lambda worker: worker.cancel_asides(),
    ],
)
def test_it_gives_way_to_everything(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory, other: Callable[[EngineWorker], None]
) -> None:
    told: list[object] = []
    for signal in (loaded_worker.aside_finished, loaded_worker.failed, loaded_worker.cancelled):
        signal.connect(lambda *values: told.append(values))
    ask_aside(qtbot, loaded_worker, factory)
    gate, factory.gate = factory.gate, None
    other(loaded_worker)
    qtbot.waitUntil(lambda: loaded_worker.idle and not loaded_worker._asides, timeout=5000)
    assert not told
    assert gate is not None
    assert not gate.is_set()


def test_an_error_of_it_is_nobodys(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    told: list[object] = []
    loaded_worker.failed.connect(lambda *values: told.append(values))
    factory.script = ["Paris", shortage()]
    loaded_worker.generate_aside(1, MESSAGES, GenerationParams())
    qtbot.waitUntil(lambda: not loaded_worker._asides, timeout=5000)
    assert not told


def test_closing_does_not_wait_for_it(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    ask_aside(qtbot, loaded_worker, factory)
    assert loaded_worker.shutdown(5000)
    assert factory.engine.closed
    loaded_worker.generate_aside(2, MESSAGES, GenerationParams())  # nobody would run it
    assert len(loaded_worker._asides) == 1
