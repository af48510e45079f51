from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import known_models
from engine.budget import (
    arena_bytes,
    download_requirements,
    ram_need,
    vram_budget,
)
from engine.errors import HardwareError, ShortageError
from engine.hardware import CpuInfo, DiskInfo, GpuInfo, GpuState, Hardware, MemoryInfo
from engine.latency import Curve, LatencyModel
from engine.models.config import MixtralConfig
from engine.options import POLICIES, LoadOptions
from engine.plan import Plan, make_plan
from engine.precision import PRECISIONS
from engine.profile import Profile
from engine.requirements import Resource
from engine.units import GIB, MIB
from kernels.formats import WeightFormat

MIXTRAL, STARTER = known_models.mixtral_8x7b(), known_models.starter()
CPU = CpuInfo("Ryzen 9", "avx2", ("portable", "avx2"), ("avx2",), 16, 8, 8, 8)
DESKTOP = 400 * MIB  # what a desktop with a browser takes of the card


def card(gib: float, used: int = DESKTOP) -> GpuInfo:
    total = int(gib * GIB)
    return GpuInfo(0, f"RTX {gib}", "GPU-1", total, max(0, total - used), "580", (8, 9), 1, 16, 4, 16)


def machine(gib: float | None, ram: int = 128) -> Hardware:
    gpus = () if gib is None else (card(gib),)
    return Hardware(
        CPU,
        gpus,
        MemoryInfo(ram * GIB, (ram - 4) * GIB),
        DiskInfo("/data", 500 * GIB, 200 * GIB),
        "Linux",
        GpuState.READY if gpus else GpuState.NO_DRIVER,
        "" if gpus else "No NVIDIA driver was found. All work runs on the CPU.",
    )


@pytest.mark.parametrize(("gib", "experts"), [(8, 7), (12, 19), (16, 31), (24, 54), (48, 125)])
def test_mixtral_experts_beside_context_workspace_and_desktop(gib: int, experts: int) -> None:
    plan = make_plan(machine(gib), MIXTRAL, LoadOptions())
    assert plan.context_length == 4096
    # The field's figures are for short chunks of a prompt; what long ones take is an expert for each 336 MiB.
    assert experts - 4 <= plan.expert_slots <= experts
    need = plan.requirements.need(Resource.VRAM)
    assert need is not None
    assert need.fits
    assert need.available - need.total < MIXTRAL.expert_bytes  # nothing that an expert fits in is left
    assert f"{plan.expert_slots} experts" in [item.label for item in need.items]


def test_without_a_gpu_nothing_is_placed_and_it_says_so() -> None:
    plan = make_plan(machine(None), STARTER, LoadOptions())
    assert (plan.device, plan.has_gpu, plan.expert_slots, plan.vram_budget) == ("cpu", False, 0, 0)
    assert plan.requirements.need(Resource.VRAM) is None
    text = "\n".join(plan.lines())
    assert "No NVIDIA driver" in text
    assert "no effect" not in text  # of the default policy: nobody chose it
    assert "All 240 experts run on the CPU" in text


def test_a_card_that_cannot_be_used_places_nothing() -> None:
    broken = replace(machine(24), gpu_state=GpuState.TORCH_WITHOUT_CUDA, gpu_message="torch without CUDA.")
    plan = make_plan(broken, MIXTRAL, LoadOptions())
    assert not plan.has_gpu
    assert plan.expert_slots == 0
    assert "torch without CUDA." in plan.notes
    with pytest.raises(HardwareError, match="torch without CUDA"):
        make_plan(broken, MIXTRAL, LoadOptions(device="cuda"))


def test_a_card_too_small_for_what_every_token_needs() -> None:
    plan = make_plan(machine(4), MIXTRAL, LoadOptions())
    assert not plan.has_gpu
    assert any("not used" in note and "missing" in note for note in plan.notes)
    asked = make_plan(machine(4), MIXTRAL, LoadOptions(device="cuda"))
    assert asked.has_gpu
    assert asked.expert_slots == 0
    with pytest.raises(ShortageError, match="graphics memory"):
        asked.requirements.check()


def test_the_cpu_can_be_chosen_although_there_is_a_card() -> None:
    plan = make_plan(machine(24), MIXTRAL, LoadOptions(device="cpu", policy="cpu"))
    assert not plan.has_gpu
    assert any("CPU was chosen" in note for note in plan.notes)


def test_a_budget_beyond_what_is_free_is_cut_and_said() -> None:
    plan = make_plan(machine(24), MIXTRAL, LoadOptions(vram_budget=40 * GIB))
    assert plan.vram_budget == card(24).vram_free
    assert any("free now" in note for note in plan.notes)


@settings(max_examples=60)
@given(small=st.floats(0, 80), more=st.floats(0, 40), context=st.integers(16, 32768))
def test_more_memory_never_places_fewer_experts(small: float, more: float, context: int) -> None:
    first = vram_budget(card(small), MIXTRAL, context)
    second = vram_budget(card(small + more), MIXTRAL, context)
    assert 0 <= first.slots <= second.slots <= 256
    assert second.fits or not first.fits
    if second.slots:
        assert second.need().fits


@settings(max_examples=60)
@given(context=st.integers(16, 30000), more=st.integers(0, 2000), budget=st.integers(0, 60 * GIB))
def test_more_context_never_places_more_experts(context: int, more: int, budget: int) -> None:
    first = vram_budget(card(48), MIXTRAL, context, budget)
    second = vram_budget(card(48), MIXTRAL, context + more, budget)
    assert second.slots <= first.slots
    if first.slots:
        assert first.need().total <= budget


@settings(max_examples=60)
@given(
    gib=st.none() | st.floats(6, 96),
    policy=st.sampled_from(POLICIES),
    bandwidth=st.none() | st.floats(5e9, 400e9),
    threads=st.integers(1, 8),
    precision=st.sampled_from(PRECISIONS),
)
def test_any_plan_is_consistent(
    gib: float | None, policy: str, bandwidth: float | None, threads: int, precision: str
) -> None:
    hardware = machine(gib)
    hardware = replace(hardware, memory=replace(hardware.memory, read_bandwidth=bandwidth))
    plan = make_plan(hardware, MIXTRAL, LoadOptions(policy=policy, threads=threads, precision=precision))
    low, high = plan.decode_range
    assert 0 < low < high
    assert plan.assumptions
    assert "before calibration" in plan.basis
    if not plan.has_gpu:
        assert plan.expert_slots == 0
    assert plan.precision == precision
    assert plan.best_precision == "bf16"
    json.dumps(plan.to_dict())


@pytest.mark.parametrize("policy", POLICIES)
def test_the_plan_says_how_missing_experts_run(policy: str) -> None:
    options = LoadOptions(policy=policy)
    plan = make_plan(machine(24), MIXTRAL, options)
    assert plan.policy_text() in plan.lines()
    assert any("at the same time" in line for line in plan.lines()) == (policy == "makespan")
    assert any("has been calibrated" in note for note in plan.notes) == (policy in ("makespan", "paper"))
    without = make_plan(machine(None), MIXTRAL, options)
    assert without.policy_text() == ""
    assert not any("has been calibrated" in note for note in without.notes)
    assert any("has no effect" in note for note in without.notes) == (policy in ("paper", "stream"))
    benchmark = make_plan(machine(24), MIXTRAL, options, measured_later=True)
    assert not any("calibrated" in note for note in benchmark.notes)


def test_working_together_is_expected_to_gain_something_at_best() -> None:
    server = machine(24)
    server = replace(server, memory=replace(server.memory, read_bandwidth=98e9))
    together, paper = (make_plan(server, MIXTRAL, LoadOptions(policy=each)) for each in ("makespan", "paper"))
    assert together.decode_range[0] == paper.decode_range[0]
    assert paper.decode_range[1] < together.decode_range[1] < 2 * paper.decode_range[1]
    assert any("at the same time" in text for text in together.assumptions)


def decode(plan: Plan) -> float:
    return sum(plan.decode_range) / 2


def test_the_estimate_follows_bandwidth_and_experts_on_the_card() -> None:
    """Mixtral on a CPU that reads 98 GB/s: measured were 219 ms for the 22.5 GB of experts alone."""
    hardware = machine(None)
    server = replace(hardware, memory=replace(hardware.memory, read_bandwidth=98e9))
    low, high = make_plan(server, MIXTRAL, LoadOptions()).decode_range
    assert low < 1 / 0.25 < high
    slower = replace(hardware, memory=replace(hardware.memory, read_bandwidth=40e9))
    assert decode(make_plan(slower, MIXTRAL, LoadOptions())) < decode(
        make_plan(server, MIXTRAL, LoadOptions())
    )
    speeds = [decode(make_plan(machine(gib), MIXTRAL, LoadOptions())) for gib in (8, 16, 24, 48, 96)]
    assert speeds == sorted(speeds)


def test_a_calibrated_speed_comes_from_the_profile() -> None:
    latency = LatencyModel(Curve.fit([(1, 1e-3), (64, 2e-3)]), other_decode=5e-3)
    profile = Profile(
        "Starter model",
        {},
        {},
        "2026-01-01T00:00:00+00:00",
        8,
        latency,
        np.full((30, 8), 0.25),
        (),
        0,
        0.065,
        0.06,
    )
    plan = make_plan(machine(None), STARTER, LoadOptions(), profile)
    low, high = plan.decode_range
    assert low < 1 / 0.065 < high  # 30 layers × 2 experts × 1 ms + 5 ms
    assert high / low < 1.3
    assert "calibration" in plan.basis
    with_gpu = make_plan(machine(24), STARTER, LoadOptions(), profile)  # measured without one: not used
    assert "before calibration" in with_gpu.basis


def test_ram_is_itemised_and_refused_with_what_is_missing() -> None:
    small = machine(None, ram=24)
    requirements = make_plan(small, MIXTRAL, LoadOptions()).requirements
    need = requirements.need(Resource.RAM)
    assert need is not None
    assert 88 * GIB < need.total < 94 * GIB
    assert need.missing == need.total - 20 * GIB
    with pytest.raises(ShortageError, match="This computer has 24 GiB"):
        requirements.check()
    assert make_plan(small, STARTER, LoadOptions()).requirements.fits
    reserved = make_plan(small, STARTER, LoadOptions(ram_reserve=22 * GIB)).requirements
    assert not reserved.fits


def test_the_starter_needs_less_than_two_gigabytes_beside_what_is_left_to_others() -> None:
    need = ram_need(MemoryInfo(8 * GIB, 6 * GIB), STARTER, 4096, cuda=False, reserve=0)
    assert 1.2 * GIB < need.total < 1.8 * GIB


def test_a_growing_machine_is_told_that_going_on_may_work() -> None:
    need = ram_need(MemoryInfo(31 * GIB, 30 * GIB, None, True), MIXTRAL, 4096, cuda=False)
    assert any("may well work" in line for line in need.advice)


def test_downloads_count_what_is_there_already() -> None:
    disk = DiskInfo("/data", 100 * GIB, 60 * GIB)
    assert not download_requirements(disk, "Mixtral", 87 * GIB).fits
    assert download_requirements(disk, "Mixtral", 87 * GIB, already=40 * GIB).fits
    with pytest.raises(ShortageError, match=r"28\.0 GiB of disk space missing"):
        download_requirements(disk, "Mixtral", 87 * GIB).check()


# Bytes of Mixtral's experts: 256 × 3 × 4096 × 14336 weights of 16, 8.5 and 4.625 bits.
@pytest.mark.parametrize(("precision", "gigabytes"), [("bf16", 90.2), ("int8", 47.9), ("int4", 26.1)])
def test_memory_and_graphics_memory_are_counted_by_the_precision(precision: str, gigabytes: float) -> None:
    plan = make_plan(machine(24), MIXTRAL, LoadOptions(precision=precision))
    ram, vram = plan.requirements.needs
    label, nbytes = ram.items[0]
    assert nbytes / 1e9 == pytest.approx(gigabytes, abs=0.05)
    assert ("bits" in label) == (precision != "bf16")
    experts, taken = vram.items[-1]
    assert experts == f"{plan.expert_slots} experts"
    assert taken / 1e9 == pytest.approx(gigabytes * plan.expert_slots / 256, rel=3e-3)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("config", [MIXTRAL.config, STARTER.config, replace(STARTER.config, hidden_size=580)])
def test_what_is_planned_is_what_the_bank_takes(precision: str, config: MixtralConfig) -> None:
    from engine.experts.bank import ExpertBank

    one_layer = replace(config, num_layers=1)
    bank = ExpertBank(one_layer, WeightFormat(precision))
    assert bank.arena.numel() == arena_bytes(one_layer, WeightFormat(precision))


def test_fewer_bits_are_faster_and_the_plan_says_what_they_cost() -> None:
    plans = [make_plan(machine(None), MIXTRAL, LoadOptions(precision=each)) for each in PRECISIONS]
    for plan, lighter in itertools.pairwise(plans):
        assert plan.decode_range[0] < lighter.decode_range[0]
        assert plan.decode_range[1] < lighter.decode_range[1]
    assert [plan.to_dict()["precision"] for plan in plans] == list(PRECISIONS)
    assert len({plan.precision_text() for plan in plans}) == len(PRECISIONS)
    assert all(plan.precision_text() in plan.lines() for plan in plans)
    with_gpu = make_plan(machine(24), MIXTRAL, LoadOptions(precision="int4"))
    assert "In graphics memory, too, a weight takes 4.6 bits" in with_gpu.precision_text()


@pytest.mark.parametrize(
    ("ram", "best", "named"),
    [(128, "bf16", []), (64, "int8", ["8 bits"]), (48, "int4", ["4 bits"]), (24, "", [])],
)
def test_where_bf16_does_not_fit_the_best_precision_that_does_is_named(
    ram: int, best: str, named: list[str]
) -> None:
    plan = make_plan(machine(None, ram=ram), MIXTRAL, LoadOptions())
    assert plan.best_precision == best
    need = plan.requirements.need(Resource.RAM)
    assert need is not None
    assert need.fits == (best == "bf16")
    offers = [line for line in need.advice if line.startswith("With experts in")]
    assert [line.split(" in ")[1].split(" it ")[0] for line in offers] == named
    if best:
        lighter = make_plan(machine(None, ram=ram), MIXTRAL, LoadOptions(precision=best))
        assert lighter.requirements.fits
