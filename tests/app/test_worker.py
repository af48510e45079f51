from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.errors import UnexpectedError, details_of
from app.worker import EngineWorker
from engine.events import Finished, FinishReason, TextDelta
from engine.options import LoadOptions
from engine.params import GenerationParams, Message
from tests.app.fakes import ScriptedFactory, shortage

MESSAGES = [Message("user", "What is the capital of France?")]


class Recorder:
    """Collects a worker's signals in the order they arrive."""

    def __init__(self, worker: EngineWorker) -> None:
        self.events: list[tuple[str, tuple[Any, ...]]] = []
        for name in ("progress", "loaded", "closed", "probe", "calibrated", "model_ready", "prompt_progress"):
            self._watch(worker, name)
        for name in ("text", "stats", "finished", "status_changed", "failed", "cancelled"):
            self._watch(worker, name)

    def _watch(self, worker: EngineWorker, name: str) -> None:
        getattr(worker, name).connect(lambda *values: self.events.append((name, values)))

    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    def values(self, wanted: str) -> list[tuple[Any, ...]]:
        return [values for name, values in self.events if name == wanted]

    def answer(self, request_id: int) -> str:
        return "".join(text for number, text in self.values("text") if number == request_id)


def wait_idle(qtbot: QtBot, worker: EngineWorker) -> None:
    qtbot.waitUntil(lambda: worker.idle, timeout=5000)


def test_loading_reports_progress_and_then_the_model(qtbot: QtBot, worker: EngineWorker) -> None:
    seen = Recorder(worker)
    worker.load(Path("/models/starter"), LoadOptions())
    assert not worker.idle
    assert worker.operation == "load"
    wait_idle(qtbot, worker)
    assert seen.names()[0] == "progress"
    assert seen.values("progress")[-1][0].done == 3
    (status, params), *_ = seen.values("loaded")
    assert status.is_starter
    assert params.sampling.greedy


def test_an_answer_arrives_whole_and_finishes_last(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    seen = Recorder(loaded_worker)
    loaded_worker.generate(5, MESSAGES, GenerationParams())
    wait_idle(qtbot, loaded_worker)
    assert seen.answer(5) == "Paris is the capital."
    assert seen.names()[-1] == "finished"
    finished: Finished = seen.values("finished")[0][1]
    assert finished.reason is FinishReason.EOS
    request_id, stats = seen.values("stats")[-1]
    assert request_id == 5
    assert stats.generated_tokens == finished.stats.generated_tokens == 3
    assert factory.engine.conversations == [MESSAGES]


def test_a_fast_engine_is_heard_at_most_thirty_times_a_second(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.script = [f"{number} " for number in range(400)]
    factory.delay = 0.001
    seen = Recorder(loaded_worker)
    started = time.monotonic()
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    wait_idle(qtbot, loaded_worker)
    most = (time.monotonic() - started) / 0.033 + 3  # the first and the last come at once
    assert seen.answer(1) == "".join(str(piece) for piece in factory.script)
    assert len(seen.values("text")) <= most
    assert len(seen.values("stats")) <= most


def test_text_of_a_slow_engine_does_not_wait_for_the_next_token(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    seen = Recorder(loaded_worker)
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    qtbot.waitUntil(lambda: seen.answer(1) == "Paris ", timeout=5000)
    factory.gate.set()
    wait_idle(qtbot, loaded_worker)


def test_cancelling_stops_within_one_token(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    seen = Recorder(loaded_worker)
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    loaded_worker.cancel()
    wait_idle(qtbot, loaded_worker)
    assert seen.answer(1) == "Paris "
    assert seen.values("finished")[0][1].reason is FinishReason.CANCELLED


def test_cancelling_also_drops_what_waits(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.gate = threading.Event()
    seen = Recorder(loaded_worker)
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    loaded_worker.generate(2, MESSAGES, GenerationParams())
    qtbot.waitUntil(lambda: factory.emitted == 1, timeout=5000)
    loaded_worker.cancel()
    wait_idle(qtbot, loaded_worker)
    assert [values[0] for values in seen.values("finished")] == [1]
    assert seen.values("cancelled") == [("generate",)]


@pytest.mark.parametrize("operation", ["load", "calibrate", "prepare_starter", "download"])
def test_each_long_operation_can_be_cancelled(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory, operation: str
) -> None:
    factory.load_gate = factory.calibrate_gate = factory.download_gate = threading.Event()
    seen = Recorder(loaded_worker)
    start = {
        "load": lambda: loaded_worker.load(Path("/other"), LoadOptions()),
        "calibrate": loaded_worker.calibrate,
        "prepare_starter": loaded_worker.prepare_starter,
        "download": lambda: loaded_worker.download("some/model", Path("/models")),
    }[operation]
    with qtbot.waitSignal(loaded_worker.progress):
        start()
    loaded_worker.cancel()
    wait_idle(qtbot, loaded_worker)
    assert seen.values("cancelled") == [(operation,)]
    assert not seen.values("failed")


def test_an_error_of_the_engine_arrives_as_it_is(
    qtbot: QtBot, worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.load_error = error = shortage()
    seen = Recorder(worker)
    worker.load(Path("/models/large"), LoadOptions())
    wait_idle(qtbot, worker)
    assert seen.values("failed") == [("load", error)]
    assert not seen.values("loaded")


def test_text_before_an_error_is_not_lost(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.script = ["half an ", "answer", shortage()]
    seen = Recorder(loaded_worker)
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    wait_idle(qtbot, loaded_worker)
    assert seen.answer(1) == "half an answer"
    assert seen.names()[-1] == "failed"


def test_a_fault_of_the_program_is_reported_with_details_and_the_worker_lives_on(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.script = [ZeroDivisionError("by nothing")]
    seen = Recorder(loaded_worker)
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    wait_idle(qtbot, loaded_worker)
    operation, error = seen.values("failed")[0]
    assert operation == "generate"
    assert isinstance(error, UnexpectedError)
    assert "Something unexpected happened" in error.what
    assert "by nothing" not in str(error)
    assert "ZeroDivisionError: by nothing" in details_of(error)
    factory.script = ["fine"]
    loaded_worker.generate(2, MESSAGES, GenerationParams())
    wait_idle(qtbot, loaded_worker)
    assert seen.answer(2) == "fine"


def test_running_out_of_memory_is_explained(
    qtbot: QtBot, worker: EngineWorker, factory: ScriptedFactory
) -> None:
    factory.load_error = MemoryError()
    seen = Recorder(worker)
    worker.load(Path("/models/large"), LoadOptions())
    wait_idle(qtbot, worker)
    assert "out of memory" in seen.values("failed")[0][1].what


def test_generating_without_a_model_says_what_to_do(qtbot: QtBot, worker: EngineWorker) -> None:
    seen = Recorder(worker)
    worker.generate(1, MESSAGES, GenerationParams())
    wait_idle(qtbot, worker)
    assert seen.values("failed")[0][1].action


def test_loading_another_model_closes_the_first(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    first = factory.engine
    seen = Recorder(loaded_worker)
    loaded_worker.load(Path("/other"), LoadOptions(policy="cpu"))
    wait_idle(qtbot, loaded_worker)
    assert first.closed
    assert not factory.engine.closed
    assert [name for name in seen.names() if name in ("closed", "loaded")] == ["closed", "loaded"]
    assert factory.options[-1].policy == "cpu"


def test_calibration_shows_each_probe_and_then_the_profile(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory
) -> None:
    seen = Recorder(loaded_worker)
    loaded_worker.calibrate()
    wait_idle(qtbot, loaded_worker)
    assert [values[0] for values in seen.values("probe")] == factory.probes
    assert seen.values("calibrated") == [("profile",)]
    assert "status_changed" in seen.names()


def test_models_are_prepared_and_downloaded(
    qtbot: QtBot, worker: EngineWorker, factory: ScriptedFactory
) -> None:
    seen = Recorder(worker)
    worker.prepare_starter()
    worker.download("some/model", Path("/models/some"))
    wait_idle(qtbot, worker)
    assert seen.values("model_ready") == [(factory.model_folder,), (Path("/models/some"),)]
    assert factory.downloads == [("some/model", Path("/models/some"))]


@pytest.mark.parametrize("busy", ["idle", "generating", "loading"])
def test_shutdown_makes_any_work_give_way_and_closes_the_engine(
    qtbot: QtBot, factory: ScriptedFactory, busy: str
) -> None:
    worker = EngineWorker(factory)
    worker.load(Path("/models/starter"), LoadOptions())
    wait_idle(qtbot, worker)
    engine = factory.engine
    factory.gate = factory.load_gate = threading.Event()
    if busy == "generating":
        with qtbot.waitSignal(worker.text):
            worker.generate(1, MESSAGES, GenerationParams())
    elif busy == "loading":
        with qtbot.waitSignal(worker.progress):
            worker.load(Path("/other"), LoadOptions())
    assert worker.shutdown(4000)  # the gates stay shut longer
    assert engine.closed
    worker.deleteLater()


def test_an_operation_that_does_not_give_way_does_not_hold_the_program(
    qtbot: QtBot, factory: ScriptedFactory
) -> None:
    release, running = threading.Event(), threading.Event()

    class Stubborn(ScriptedFactory):
        def prepare_starter(self, progress: Any, cancel: Any, *, force: bool = False) -> Path:
            running.set()
            release.wait(10)
            return self.model_folder

    worker = EngineWorker(Stubborn())
    worker.prepare_starter()
    assert running.wait(5)
    assert not worker.shutdown(100)
    release.set()
    assert worker._thread.wait(5000)
    worker.deleteLater()


def test_an_engine_that_ends_without_finishing_is_a_fault(
    qtbot: QtBot, loaded_worker: EngineWorker, factory: ScriptedFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factory.engine, "generate", lambda *_: iter([TextDelta("a")]))
    seen = Recorder(loaded_worker)
    loaded_worker.generate(1, MESSAGES, GenerationParams())
    wait_idle(qtbot, loaded_worker)
    assert isinstance(seen.values("failed")[0][1], UnexpectedError)
