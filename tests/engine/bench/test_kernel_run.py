"""Whole runs with tiny experts: what is measured, in which order, and what is left of an interrupted one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.bench import kernel_run
from engine.bench.kernel_request import KernelRequest
from engine.bench.kernel_run import KernelRun
from engine.errors import Cancelled, HardwareError, MemoryFullError
from engine.hardware.facts import MemoryInfo
from engine.progress import CancelToken, Progress
from engine.units import MIB
from kernels import native
from kernels.cpu import CpuPool
from kernels.formats import WeightFormat
from kernels.isa import Isa, available_isas
from kernels.shape import ExpertShape
from kernels.tuning import FormatTuning
from kernels.tuning_probe import TuningResult

BF16 = WeightFormat.BF16
HIDDEN, INTERMEDIATE = 64, 96
REQUEST: dict[str, Any] = {"hidden": HIDDEN, "intermediate": INTERMEDIATE, "seconds": 0.002, "threads": 2}


def request(**changes: Any) -> KernelRequest:
    return KernelRequest(**{**REQUEST, "isas": (Isa.PORTABLE,), "tokens": (1, 3), **changes})


def test_every_format_instruction_set_and_token_count_is_measured() -> None:
    run = KernelRun(request(isas=available_isas()), wanted=MIB)
    run.measure()
    report = run.report
    assert report.complete
    assert not report.left_out
    assert [(figure.format, figure.isa, figure.tokens) for figure in report.figures] == [
        (form, isa, tokens) for form in WeightFormat for isa in available_isas() for tokens in (1, 3)
    ]
    for figure in report.figures:
        assert figure.nbytes == ExpertShape(HIDDEN, INTERMEDIATE, figure.format).nbytes
        assert 0 < figure.times.best <= figure.times.median
        assert figure.times.calls >= 3
    assert sorted(report.torch) == [1, 3]
    assert len(report.reads) == 1 + len(WeightFormat) * len(available_isas())  # first, and after each level
    assert min(report.reads) > 0
    for form in WeightFormat:
        rotation = report.rotations[form]
        assert rotation["bytes"] == ExpertShape(HIDDEN, INTERMEDIATE, form).nbytes
        assert rotation["count"] * rotation["bytes"] >= MIB
        assert not rotation["short"]
    assert report.machine["threads"] == 2


def test_calls_take_the_next_experts_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[int]] = []
    real = CpuPool.run_experts

    def run_experts(pool: CpuPool, x: Any, jobs: Any, shape: ExpertShape, out: Any) -> None:
        if x.shape[0] != 3:  # the choice of kernels tries other numbers of tokens
            real(pool, x, jobs, shape, out)
            return
        assert all(job.tokens.tolist() == [0, 1, 2] for job in jobs)
        calls.append([job.block.data_ptr() for job in jobs])
        real(pool, x, jobs, shape, out)
        assert torch.isfinite(out).all()

    monkeypatch.setattr(CpuPool, "run_experts", run_experts)
    run = KernelRun(request(formats=(BF16,), tokens=(3,), experts=2), wanted=5 * 36864)
    run.measure()
    nbytes = ExpertShape(HIDDEN, INTERMEDIATE).nbytes
    assert run.report.rotations[BF16]["count"] == 6  # three calls of two are the first to reach 5 experts
    start = calls[0][0]
    for number, blocks in enumerate(calls):
        first = 2 * (number % 3)
        assert blocks == [start + first * nbytes, start + (first + 1) * nbytes]


@pytest.mark.parametrize("exact", [False, True])
def test_figures_are_those_of_the_chosen_kernels(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above two tokens 8 bits, unless that is forbidden; bf16 and the portable level have no such way."""
    asked: list[dict[str, Any]] = []
    real = CpuPool.run_experts

    def measure(pool: CpuPool, shape: ExpertShape, blocks: list[torch.Tensor], **how: Any) -> TuningResult:
        asked.append(how)
        chosen = FormatTuning(2, many_eight_bit=how["eight_bit"])
        tuning = replace(pool.tuning.with_format(shape.format, chosen), panel_tokens=7)
        return TuningResult(tuning, chosen, {}, {}, {}, 1.0)

    def run_experts(pool: CpuPool, x: Any, jobs: Any, shape: ExpertShape, out: Any) -> None:
        chosen, panels = pool.tuning.formats[shape.format], pool.tuning.panel_tokens
        assert (chosen, panels) == (FormatTuning(2, many_eight_bit=not exact), 7)
        real(pool, x, jobs, shape, out)

    monkeypatch.setattr(kernel_run, "measure_tuning", measure)
    monkeypatch.setattr(CpuPool, "run_experts", run_experts)
    isas = available_isas()
    run = KernelRun(request(isas=isas, tokens=(2, 3), experts=3, exact_activations=exact), wanted=MIB)
    run.measure()
    assert len(asked) == len(WeightFormat) * len(isas)
    assert all((how["experts"], how["eight_bit"], how["most_tokens"]) == (3, not exact, 3) for how in asked)
    for figure in run.report.figures:
        rounded = not exact and figure.tokens == 3 and figure.format != BF16 and figure.isa != Isa.PORTABLE
        assert figure.activations == ("8-bit" if rounded else "exact")


def test_choosing_kernels_can_be_interrupted() -> None:
    cancel = CancelToken()

    def progress(progress: Progress) -> None:
        if progress.what == "Choosing kernels for bf16 with portable":
            cancel.cancel()

    run = KernelRun(request(), wanted=MIB, cancel=cancel, progress=progress)
    with pytest.raises(Cancelled):
        run.measure()
    assert run.report.torch
    assert not run.report.figures


def test_calls_that_would_take_too_long_are_left_out() -> None:
    run = KernelRun(request(tokens=(1, 2, 512)), wanted=MIB, longest_call=1e-9)
    run.measure()
    assert {figure.tokens for figure in run.report.figures} == {1}
    assert {left_out.tokens for left_out in run.report.left_out} == {2, 512}
    assert all(left_out.seconds > 1e-9 for left_out in run.report.left_out)
    assert set(run.report.torch) == {1}
    assert run.report.complete


def when(what: str, act: Callable[[], None]) -> Callable[[Progress], None]:
    return lambda progress: act() if progress.what.startswith(what) and progress.done else None


def test_what_was_measured_before_an_interruption_is_kept() -> None:
    cancel = CancelToken()
    run = KernelRun(
        request(), wanted=MIB, cancel=cancel, progress=when("Measuring bf16 with portable", cancel.cancel)
    )
    with pytest.raises(Cancelled):
        run.measure()
    assert [figure.tokens for figure in run.report.figures] == [1]
    assert len(run.report.reads) == 1
    assert not run.report.complete


def test_making_experts_can_be_interrupted() -> None:
    cancel = CancelToken()
    run = KernelRun(request(), wanted=MIB, cancel=cancel, progress=when("Making experts", cancel.cancel))
    with pytest.raises(Cancelled):
        run.measure()
    assert not run.report.reads


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_run, "detect_memory", lambda _: MemoryInfo(MIB, 100_000))
    with pytest.raises(MemoryFullError):
        KernelRun(request(), wanted=MIB).measure()


def test_without_memory_for_bf16_torch_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_run, "detect_memory", lambda _: MemoryInfo(MIB, 200_000))
    run = KernelRun(request(formats=(WeightFormat.INT4,)), wanted=MIB)
    run.measure()
    assert not run.report.torch
    assert [figure.tokens for figure in run.report.figures] == [1, 3]
    assert run.report.rotations["int4"]["short"]


def test_reading_is_of_memory_that_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """int4's smaller experts fill more of a small memory than bf16's, which are written first."""
    real, shares = kernel_run.read_gbs, []

    def read_gbs(pool: CpuPool, memory: torch.Tensor, *rest: Any) -> float:
        shares.append((memory != 0).float().mean().item())
        return real(pool, memory, *rest)

    monkeypatch.setattr(kernel_run, "read_gbs", read_gbs)
    monkeypatch.setattr(kernel_run, "detect_memory", lambda _: MemoryInfo(MIB, 420_000))
    KernelRun(request(), wanted=MIB).measure()
    assert len(shares) == 4
    assert min(shares) > 0.9


def test_a_rotation_shorter_than_wanted_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_run, "detect_memory", lambda _: MemoryInfo(MIB, 400_000))
    run = KernelRun(request(formats=(BF16,)), wanted=MIB)
    run.measure()
    assert run.report.rotations[BF16] == {"count": 6, "bytes": 36864, "short": True}


def test_threads_that_the_system_does_not_give_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_threads(*_: object) -> None:
        raise RuntimeError("Resource temporarily unavailable")

    monkeypatch.setattr(native.load(), "Pool", no_threads)
    with pytest.raises(HardwareError, match="does not give 2 threads"):
        KernelRun(request(), wanted=MIB).measure()
