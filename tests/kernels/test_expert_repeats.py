"""The same bits every time: results depend on the call and the thread count, never on what runs beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa
from kernels.formats import WeightFormat
from kernels.tuning import Way
from tests.kernels.experts import (
    BY_PANELS,
    BY_ROWS,
    Expert,
    errors,
    make_expert,
    make_rows,
    run,
    tuning,
    ways,
)

SHAPE = (300, 597)
TOKENS = 24
REPEATS = 15
FORMATS_AND_WAYS = [(format, way) for format in WeightFormat for way in ways(format)]
every_way = pytest.mark.parametrize(("format", "way"), FORMATS_AND_WAYS, ids=str)


@contextmanager
def busy_python() -> Iterator[None]:
    """A thread that computes, with and without the interpreter's lock."""
    stop = threading.Event()
    matrix = torch.randn(120, 120)

    def work() -> None:
        while not stop.is_set():
            torch.mm(matrix, matrix)
            sum(range(2000))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def busy_pool(expert: Expert) -> Iterator[None]:
    """A second pool at work on the same expert with the same inputs, dividing otherwise."""
    stop = threading.Event()
    x = make_rows(7, expert.shape.hidden)

    def work() -> None:
        with CpuPool(2) as pool:
            while not stop.is_set():
                run(pool, expert, x)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def layer(pool: CpuPool, experts: list[Expert], x: Tensor) -> Tensor:
    """A call as a layer makes it: few tokens, many, and a part of an expert; tokens meet several experts."""
    g = torch.Generator().manual_seed(8)
    out = torch.zeros(TOKENS, SHAPE[0])
    jobs = []
    for expert, count, panels in zip(experts, (1, 17, 4), (None, None, (3, 18)), strict=True):
        tokens = torch.randperm(TOKENS, generator=g)[:count].int()
        jobs.append(ExpertJob(expert.block, tokens, torch.rand(count, generator=g), panels))
    pool.run_experts(x, jobs, experts[0].shape, out)
    return out


@pytest.fixture(scope="module")
def experts() -> dict[WeightFormat, list[Expert]]:
    return {
        format: [make_expert(ExpertShape(*SHAPE, format), seed) for seed in range(3)]
        for format in WeightFormat
    }


@every_way
@pytest.mark.parametrize("division", [BY_PANELS, BY_ROWS])
def test_repeated_calls_under_load(isa: Isa, experts, format: WeightFormat, way: Way, division: int) -> None:
    x = make_rows(TOKENS, SHAPE[0])
    with CpuPool(3, isa) as pool:
        pool.tuning = tuning(way, division)
        first = layer(pool, experts[format], x)
        assert first.any(dim=1).sum() >= 17
        with busy_python():
            for _ in range(REPEATS):
                assert torch.equal(layer(pool, experts[format], x), first)
        with busy_pool(experts[format][0]):
            for _ in range(REPEATS):
                assert torch.equal(layer(pool, experts[format], x), first)


@every_way
def test_another_pool_of_as_many_threads(isa: Isa, experts, format: WeightFormat, way: Way) -> None:
    """A new pool gives the same bits, whatever its threads did before; other counts round otherwise."""
    x = make_rows(TOKENS, SHAPE[0])
    outputs = {}
    for threads in (1, 2, 3):
        for attempt in range(2):
            with CpuPool(threads, isa) as pool:
                if attempt:  # other sizes, formats, and huge numbers go through first
                    run(pool, make_expert(ExpertShape(45, 70)), torch.full((50, 45), 1e30))
                    run(pool, make_expert(ExpertShape(400, 33, WeightFormat.INT4)), make_rows(3, 400))
                pool.tuning = tuning(way, BY_PANELS)
                outputs[threads, attempt] = layer(pool, experts[format], x)
        assert torch.equal(outputs[threads, 0], outputs[threads, 1])
    chosen = outputs[1, 0].any(dim=1)
    for threads in (2, 3):
        assert float(errors(outputs[threads, 0][chosen], outputs[1, 0][chosen].double()).max()) <= 1e-5


@pytest.mark.parametrize("division", [BY_PANELS, BY_ROWS])
@every_way
def test_a_token_does_not_depend_on_its_neighbours(
    isa: Isa, experts, format: WeightFormat, way: Way, division: int
) -> None:
    """Tokens that go the same way in a call of as many give the same bits, whoever is beside them."""
    x = make_rows(TOKENS, SHAPE[0])
    other = make_rows(TOKENS, SHAPE[0], seed=1)
    expert = experts[format][0]
    with CpuPool(2, isa) as pool:
        pool.tuning = tuning(way, division)
        for count in (3, TOKENS):
            alone = run(pool, expert, x[:count])
            beside = torch.cat((x[:1], other[1 : count - 1], x[count - 1 : count]))
            mixed = run(pool, expert, beside)
            assert torch.equal(mixed[[0, count - 1]], alone[[0, count - 1]])
