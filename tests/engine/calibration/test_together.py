"""The CPU's calls by themselves and beside copies, with the CPU as a second device: what runs, and when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from engine.calibration import cpu_experts, gpu_probes, together
from engine.calibration.cpu_experts import CpuExperts, intercept
from engine.calibration.gpu_probes import GpuProbes
from engine.calibration.probes import PROMPT_TOKENS
from engine.calibration.quick import QUICK_COUNTS, measure_costs
from engine.calibration.timing import Timing
from engine.calibration.together import TOGETHER_COUNTS, TogetherProbes
from engine.experts.panels import Panels
from engine.experts.slots import GpuExperts
from engine.experts.stream import DirectStream
from engine.latency import LatencyModel
from engine.models.loader import LoadedModel, load_model
from engine.options import LoadOptions
from engine.placement import place_uniform
from engine.policy import decide
from kernels.cpu import CpuPool

PANELS = 6


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real clocks, less patience."""

    def measure(action: Callable[[], float | None], **_: Any) -> Timing:
        times = []
        for _repetition in range(5):
            begin = time.perf_counter()
            taken = action()
            times.append(time.perf_counter() - begin if taken is None else taken)
        return Timing.of(times)

    for module in (cpu_experts, gpu_probes, together):
        monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(together, "_SECONDS", 0.02)


@pytest.fixture(params=[0, 3, 8])
def parts(request: pytest.FixtureRequest, make_model: Callable[..., Any]) -> Iterator[LoadedModel]:
    """A model of 2 × 4 experts with none, some or all of them on the second device."""
    model = make_model(intermediate_size=32 * PANELS)
    placement = place_uniform(2, 4, request.param)
    options = LoadOptions(threads=1, device="cpu")
    with load_model(model.path, options, placement, expert_device=torch.device("cpu")) as loaded:
        yield loaded


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int, tuple[int, int] | None]]]:
    """For each call of the pool, each expert's (block, tokens, panels)."""
    calls: list[list[tuple[int, int, tuple[int, int] | None]]] = []
    real = CpuPool.run_experts

    def run(self: CpuPool, x: Any, jobs: Any, shape: Any, out: Any) -> None:
        calls.append([(job.block.data_ptr(), len(job.tokens), job.panels) for job in jobs])
        real(self, x, jobs, shape, out)

    monkeypatch.setattr(CpuPool, "run_experts", run)
    return calls


def test_calls_go_over_all_experts(parts: LoadedModel, jobs: list[Any]) -> None:
    cpu = CpuExperts(parts)
    assert cpu.one(5).seconds > 0
    assert {len(call) for call in jobs} == {cpu.at_once} == {2}
    assert {(tokens, panels) for call in jobs for _, tokens, panels in call} == {(5, (0, PANELS))}
    assert len({block for call in jobs for block, _, _ in call}) == 8


def test_experts_whose_memory_was_given_back_are_left_out(parts: LoadedModel, jobs: list[Any]) -> None:
    dropped = {(0, 1), (1, 3)}
    for item in dropped:
        parts.bank.drop(*item)
    CpuExperts(parts).one(1)
    held = {parts.bank.block(*divmod(number, 4)).data_ptr() for number in range(8)}
    held -= {parts.bank.block(*item).data_ptr() for item in dropped}
    assert {block for call in jobs for block, _, _ in call} == held


def test_the_cost_of_starting_comes_from_a_part_and_a_whole(parts: LoadedModel, jobs: list[Any]) -> None:
    assert CpuExperts(parts).start().seconds >= 0
    assert {panels for call in jobs for _, _, panels in call} == {(0, 1), (0, PANELS)}
    line = intercept(Timing(3.0, 0.1), Timing(6.0, 0.2), 1 / 4)
    assert (line.seconds, line.spread) == (2.0, 0.2)  # 2 + 4 · share
    assert intercept(Timing(1.0, 0), Timing(6.0, 0), 1 / 4).seconds == 0  # noise
    assert intercept(Timing(1.0, 0), Timing(1.0, 0), 1).seconds == 0  # an expert of one panel


def test_copies_of_a_part_bring_that_part(parts: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[tuple[int, int] | None] = []
    real = DirectStream.fetch

    def fetch(self: DirectStream, layer: int, expert: int, panels: tuple[int, int] | None = None) -> int:
        fetched.append(panels)
        return real(self, layer, expert, panels)

    monkeypatch.setattr(DirectStream, "fetch", fetch)
    assert GpuProbes(parts).copy_start().seconds >= 0
    assert fetched == [(PANELS - 1, PANELS)] * 5 + [None] * 5


def test_both_sides_run_at_the_same_time(parts: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only calls move on: while a copy is under way they take twice as long."""
    copying = threading.Event()
    patience = 0.0  # how long a call waits for a copy to be beside it
    now = 0.0
    beside_copies: list[bool] = []
    real = DirectStream.fetch

    def fetch(self: DirectStream, layer: int, expert: int, panels: tuple[int, int] | None = None) -> int:
        copying.set()
        time.sleep(0.005)  # other threads work
        place = real(self, layer, expert, panels)
        self._seconds += 1.0
        copying.clear()
        return place

    def run(*_: Any) -> None:
        nonlocal now
        beside_copies.append(copying.wait(patience))
        now += 0.004 if beside_copies[-1] else 0.002

    def measure(call: Callable[[], object], **_: Any) -> Timing:
        begin = now
        call()
        return Timing(now - begin, 0.0)

    monkeypatch.setattr(together, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(together, "measure", measure)
    monkeypatch.setattr(DirectStream, "fetch", fetch)
    monkeypatch.setattr(CpuPool, "run_experts", run)
    probes = TogetherProbes(CpuExperts(parts), GpuProbes(parts))
    alone = probes.cpu_alone(3)
    assert not any(beside_copies)
    assert alone.seconds == pytest.approx(0.001)  # two experts in 2 ms
    beside_copies.clear()
    patience = 0.1
    beside = probes.cpu_together(3)
    assert sum(beside_copies) > len(beside_copies) / 2
    assert beside.seconds == pytest.approx(0.002)
    assert probes.copy_together(3).seconds == pytest.approx(1.0, abs=0.1)
    assert probes.copy_together(1).seconds == pytest.approx(1.0, abs=0.1)  # nothing was measured before


def test_what_a_call_raises_ends_the_probe(parts: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(CpuPool, "run_experts", run)
    monkeypatch.setattr(together, "_SECONDS", 10.0)
    with pytest.raises(MemoryError):
        TogetherProbes(CpuExperts(parts), GpuProbes(parts)).cpu_together(1)


def test_quick_costs_are_complete_and_good_for_deciding(parts: LoadedModel) -> None:
    checks: list[None] = []
    costs = measure_costs(parts, lambda: checks.append(None))
    assert costs.has_gpu
    assert costs.cpu.tokens == (*QUICK_COUNTS, PROMPT_TOKENS)
    assert costs.together is not None
    assert costs.together.tokens == TOGETHER_COUNTS
    assert all(value > 0 for value in costs.together.slowdowns + costs.together.copies)
    assert len(checks) > 10
    resident = parts.model.executor.gpu.present[0]  # type: ignore[union-attr]
    plan = decide("makespan", resident, torch.ones(4, dtype=torch.int64).numpy(), costs, PANELS)
    assert plan.seconds > 0


def test_long_prompts_are_left_out_where_the_memory_is_short(
    parts: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(experts: GpuExperts, place: int, x: torch.Tensor, panels: Panels | None = None) -> torch.Tensor:
        if len(x) > 256:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return computed(experts, place, x, panels)

    computed = GpuExperts.run
    monkeypatch.setattr(GpuExperts, "run", run)
    costs = measure_costs(parts)
    assert costs.gpu is not None
    assert costs.cpu.tokens == costs.gpu.tokens == QUICK_COUNTS


def test_without_a_gpu_only_the_cpu_is_measured(make_model: Callable[..., Any]) -> None:
    with load_model(make_model().path, LoadOptions(threads=1, device="cpu")) as loaded:
        costs: LatencyModel = measure_costs(loaded)
    assert not costs.has_gpu
    assert costs.together is None
    assert costs.cpu_lat(1) > 0
