"""Several answers to one question, told apart by the number of their request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.errors import UnexpectedError
from app.worker import EngineWorker
from engine.events import Event, Finished, FinishReason, GenerationStats
from engine.params import GenerationParams, Message
from tests.app.fakes import ScriptedFactory

MESSAGES = [Message("user", "What is the capital of France?")]


def test_several_answers_have_their_own_text_and_end(
    qtbot: QtBot, factory: ScriptedFactory, loaded_worker: EngineWorker
) -> None:
    texts: dict[int, str] = {5: "", 6: ""}
    ended: list[int] = []
    loaded_worker.text.connect(lambda request, text: texts.update({request: texts[request] + text}))
    loaded_worker.finished.connect(lambda request, _: ended.append(request))
    loaded_worker.generate_together([5, 6], MESSAGES, [GenerationParams(), GenerationParams()])
    qtbot.waitUntil(lambda: loaded_worker.idle and len(ended) == 2, timeout=5000)
    assert texts == {5: "1: Paris is the capital.", 6: "2: Paris is the capital."}
    assert ended == [5, 6]


def test_an_answer_of_several_that_does_not_end_is_a_fault(
    qtbot: QtBot, factory: ScriptedFactory, loaded_worker: EngineWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_one(*_: object) -> Iterator[tuple[int, Event]]:
        yield 0, Finished(FinishReason.EOS, GenerationStats())

    monkeypatch.setattr(factory.engine, "generate_batch", only_one)
    with qtbot.waitSignal(loaded_worker.failed) as failed:
        loaded_worker.generate_together([1, 2], MESSAGES, [GenerationParams(), GenerationParams()])
    assert failed.args is not None
    assert isinstance(failed.args[1], UnexpectedError)
