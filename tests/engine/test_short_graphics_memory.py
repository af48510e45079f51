"""An engine whose graphics card has less memory than planned: by an injected error, on the CPU."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine import runtime
from engine.errors import MemoryFullError
from engine.events import Finished
from engine.models.loader import LoadedModel, load_model
from engine.options import LoadOptions
from engine.params import GenerationParams, SamplingParams
from engine.plan import Plan, make_plan
from engine.runtime import Engine
from engine.units import MIB
from tests.engine.generation.tokenizer_folders import byte_level_folder

OPTIONS = LoadOptions(threads=1, device="cpu")
PLANNED = 1000 * MIB


class Card:
    """Plans for a card of 1000 MiB on which a model loads within `room` bytes."""

    def __init__(self) -> None:
        self.room = PLANNED
        self.budgets: list[int] = []
        self.failures = 0

    def make_plan(self, hardware: Any, info: Any, options: LoadOptions, profile: Any = None) -> Plan:
        budget = options.vram_budget or PLANNED
        plan = make_plan(hardware, info, options, profile)
        return replace(plan, has_gpu=True, vram_budget=budget, expert_slots=budget * 8 // PLANNED)

    def load_model(self, path: Path, options: LoadOptions, *others: Any, **named: Any) -> LoadedModel:
        assert options.vram_budget is not None
        self.budgets.append(options.vram_budget)
        if options.vram_budget > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        second = torch.device("cpu")
        return load_model(path, replace(options, vram_budget=None), *others, **named, expert_device=second)


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Card:
    monkeypatch.setenv("FIDDLER_DATA_DIR", str(tmp_path))
    made = Card()
    monkeypatch.setattr(runtime, "make_plan", made.make_plan)
    monkeypatch.setattr(runtime, "load_model", made.load_model)
    return made


@pytest.fixture(scope="module")
def folder(make_model: Any) -> Iterator[Path]:
    model = make_model(seed=5, vocab_size=410)
    byte_level_folder(model.path)
    return model.path


def test_what_fits_at_once_is_loaded_as_planned(card: Card, folder: Path) -> None:
    with Engine.load(folder, OPTIONS) as engine:
        assert engine.status().resident_experts == 8
        assert not [note for note in engine.status().notes if "ran out" in note]
    assert card.budgets == [PLANNED]


def test_a_smaller_budget_is_tried_and_said_and_the_engine_answers(card: Card, folder: Path) -> None:
    card.room = 850 * MIB
    with Engine.load(folder, OPTIONS) as engine:
        status = engine.status()
        assert status.vram_budget == PLANNED * 0.81 // 1
        assert status.resident_experts == 6
        assert any("ran out" in note and "810.0 MiB" in note for note in status.notes)
        params = GenerationParams(SamplingParams(temperature=0), max_tokens=4, ignore_eos=True)
        assert isinstance(list(engine.continue_raw("Paris", params))[-1], Finished)
    assert card.budgets == [PLANNED, PLANNED * 9 // 10, PLANNED * 81 // 100]


def test_what_never_fits_is_a_shortage_that_leaves_no_thread(card: Card, folder: Path) -> None:
    card.room = 0
    before = threading.active_count()
    with pytest.raises(MemoryFullError, match="graphics card's memory is full"):
        Engine.load(folder, OPTIONS)
    assert len(card.budgets) == 4
    assert threading.active_count() == before


def test_a_prompt_is_read_in_shorter_chunks_where_memory_runs_out(
    card: Card, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = GenerationParams(SamplingParams(temperature=0), max_tokens=4, ignore_eos=True)
    text = "The quick brown fox jumps over the lazy dog. " * 4
    with Engine.load(folder, OPTIONS) as engine:
        expected = [event for event in engine.continue_raw(text, params) if not isinstance(event, Finished)]
    with Engine.load(folder, OPTIONS) as engine:
        real, refused = engine.parts.model.forward, []

        def forward(token_ids: torch.Tensor, *others: Any, **named: Any) -> torch.Tensor | None:
            if len(token_ids) > 40:
                refused.append(len(token_ids))
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return real(token_ids, *others, **named)

        monkeypatch.setattr(engine.parts.model, "forward", forward)
        events = [event for event in engine.continue_raw(text, params) if not isinstance(event, Finished)]
    assert refused
    texts = [
        [event.text for event in told if hasattr(event, "text")]  # type: ignore[attr-defined]
        for told in (expected, events)
    ]
    assert texts[0] == texts[1]
