"""The tables of rows against a naive model in which every sequence owns copies of its keys."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.errors import GenerationError
from engine.kvbatch import SequenceBatch
from engine.kvcache import KVCache
from engine.models.config import MixtralConfig
from tests.engine.conftest import SMALL

CONFIG = MixtralConfig.from_dict(SMALL)
CPU = torch.device("cpu")
CAPACITY, PLACES = 24, 5


def new_pool(capacity: int = CAPACITY) -> KVCache:
    pool = KVCache(CONFIG, capacity, CPU, torch.float32)
    pool.data.fill_(torch.nan)  # what nobody wrote is no number
    return pool


def written(pool: KVCache, rows: Any) -> list[int]:
    """What was stored in rows: every element of a row carries the same number."""
    found = pool.data[:, :, :, torch.as_tensor(np.asarray(rows, dtype=np.int64))]  # [..., rows, head_dim]
    flat = found.movedim(3, 0).flatten(1)
    assert (flat == flat[:, :1]).all()
    return [int(value) for value in flat[:, 0]]


class Tables(RuleBasedStateMachine):
    """Random prompts, steps, forks and ends; `naive` is a list of keys per sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = new_pool()
        self.batch = SequenceBatch(self.pool, PLACES)
        self.naive: list[list[int]] = []
        self.key = itertools.count(1)

    @property
    def used(self) -> int:
        """Keys that exist, those that beams share counted once."""
        return len({key for sequence in self.naive for key in sequence})

    @precondition(lambda self: len(self.naive) < PLACES)
    @rule(tokens=st.integers(1, 9), unread=st.integers(0, 3), give_up=st.booleans())
    def read_prompt(self, tokens: int, unread: int, give_up: bool) -> None:
        if tokens + unread > CAPACITY - self.used:
            with pytest.raises(GenerationError, match="does not fit"):
                self.batch.claim(tokens + unread)
            return
        prompt = self.batch.claim(tokens + unread)
        keys = [next(self.key) for _ in range(tokens)]
        for place, key in enumerate(keys):
            prompt.cache.data[:, :, :, place] = key
        prompt.cache.length = tokens
        if give_up:
            self.batch.release(prompt)
        else:
            assert self.batch.add(prompt) == len(self.naive)
            self.naive.append(keys)

    @precondition(lambda self: self.naive)
    @rule(fails=st.booleans())
    def step(self, fails: bool) -> None:
        if len(self.naive) > CAPACITY - self.used:
            with pytest.raises(GenerationError, match="does not fit"):
                self.batch.begin_step()
            return
        self.batch.begin_step()
        count = len(self.naive)
        positions = self.batch.positions[:count].long()
        assert positions.tolist() == [len(sequence) for sequence in self.naive]
        rows = self.batch.rows[torch.arange(count), positions].tolist()
        assert len(set(rows)) == count
        for row, sequence in zip(rows, self.naive, strict=True):
            if not fails:
                sequence.append(next(self.key))
                self.pool.data[:, :, :, row] = sequence[-1]
        if not fails:
            self.batch.end_step()

    @precondition(lambda self: self.naive)
    @rule(data=st.data())
    def reorder(self, data: st.DataObject) -> None:
        parents = data.draw(st.lists(st.integers(0, len(self.naive) - 1), max_size=PLACES))
        self.batch.reorder(parents)
        self.naive = [list(self.naive[parent]) for parent in parents]

    @precondition(lambda self: self.naive)
    @rule(data=st.data())
    def straighten(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.naive) - 1))
        length = data.draw(st.integers(0, len(self.naive[index])))
        self.batch.straighten(index, length)
        assert written(self.pool, range(length)) == self.naive[index][:length]
        self.naive = []

    @rule(tokens=st.integers(0, 6))
    def restart(self, tokens: int) -> None:
        keys = [next(self.key) for _ in range(tokens)]
        for place, key in enumerate(keys):
            self.pool.data[:, :, :, place] = key
        self.batch.restart(tokens)
        self.naive = [keys] if keys else []

    @invariant()
    def every_sequence_finds_its_keys(self) -> None:
        batch = self.batch
        assert batch.size == len(self.naive)
        assert batch.lengths.tolist() == [len(sequence) for sequence in self.naive]
        assert (batch.positions[batch.size :] == -1).all()
        for index, sequence in enumerate(self.naive):
            rows = batch._rows[index, : len(sequence)]
            assert rows.tolist() == batch.rows[index, : len(sequence)].tolist()
            assert written(self.pool, rows) == sequence

    @invariant()
    def everything_else_is_free_and_a_number(self) -> None:
        in_step = self.batch.size if self.batch._in_step else 0
        assert self.batch.free_rows == CAPACITY - self.used - in_step
        if not in_step:
            assert not self.pool.data[:, :, :, : self.batch.used_rows].isnan().any()


TestTables = Tables.TestCase
TestTables.settings = settings(max_examples=150, stateful_step_count=30)


def test_beams_take_the_rows_of_their_prompt_once() -> None:
    pool = new_pool()
    pool.length = 10
    batch = SequenceBatch.after(pool, 4)
    batch.reorder([0, 0, 0, 0])
    assert batch.free_rows == CAPACITY - 10
    batch.begin_step()
    batch.end_step()
    assert batch.free_rows == CAPACITY - 14
    batch.reorder([2, 2, 2, 2])
    assert batch.free_rows == CAPACITY - 11
    assert batch.used_rows <= 14


def test_reordering_moves_no_keys() -> None:
    pool = new_pool()
    pool.data.zero_()
    pool.length = 3
    batch = SequenceBatch.after(pool, 2)
    batch.reorder([0, 0])
    before = pool.data._version
    batch.reorder([1, 1])
    assert pool.data._version == before


def test_a_gap_that_is_too_narrow_is_closed() -> None:
    pool = new_pool(12)
    batch = SequenceBatch(pool, 3)
    for length in (4, 4, 2):
        prompt = batch.claim(length)
        prompt.cache.data[:] = length
        prompt.cache.length = length
        batch.add(prompt)
    batch.reorder([1, 2])  # rows 0 to 3 are free, and 10 and 11
    prompt = batch.claim(6)
    assert prompt.first == 6
    assert batch.rows[:2, :2].tolist() == [[0, 1], [4, 5]]
    assert written(pool, range(6)) == [4, 4, 4, 4, 2, 2]


def test_misuse_is_an_error() -> None:
    batch = SequenceBatch(new_pool(), 1)
    with pytest.raises(ValueError, match="no step has begun"):
        batch.end_step()
    prompt = batch.claim(2)
    with pytest.raises(ValueError, match="have not been added"):
        batch.claim(2)
    with pytest.raises(ValueError, match="being read"):
        batch.begin_step()
    prompt.cache.length = 2
    batch.add(prompt)
    with pytest.raises(ValueError, match="not claimed"):
        batch.release(prompt)
    for parents in ([1], [-1], [0, 0]):
        with pytest.raises(ValueError, match="cannot be made of 1 sequences in 1 places"):
            batch.reorder(parents)
    with pytest.raises(ValueError, match="fewer than 3 tokens"):
        batch.straighten(0, 3)
    other = batch.claim(2)
    with pytest.raises(ValueError, match="all 1 places"):
        batch.add(other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
def test_the_tables_of_a_gpu_equal_those_of_the_cpu() -> None:
    batches = [
        SequenceBatch(KVCache(CONFIG, 40, torch.device(name), torch.float32), 4) for name in ("cpu", "cuda")
    ]
    for batch in batches:
        batch.pool.data.zero_()
        for length in (5, 7):
            prompt = batch.claim(length)
            prompt.cache.length = length
            batch.add(prompt)
        for parents in ([0, 1, 1], [2, 0, 0, 1], [3, 3], [1]):
            batch.begin_step()
            batch.end_step()
            batch.reorder(parents)
        prompt = batch.claim(27)
        prompt.cache.length = 27
        batch.add(prompt)
        batch.begin_step()
    cpu, gpu = batches
    assert cpu.lengths.tolist() == gpu.lengths.tolist()
    assert cpu.positions.tolist() == gpu.positions.tolist()
    for index, length in enumerate(cpu.lengths.tolist()):
        assert gpu.rows[index, : length + 1].tolist() == cpu.rows[index, : length + 1].tolist()
