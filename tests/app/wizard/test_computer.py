"""Computers in plain words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.wizard.computer import Row, details, rows
from engine.hardware import CpuInfo, GpuState, Hardware
from tests.app.wizard_fakes import GIB, HIDDEN_CARD, LAPTOP, WORKSTATION


def row(hardware: Hardware, label: str) -> Row:
    [found] = [part for part in rows(hardware) if part.label == label]
    return found


def with_cpu(**changes: object) -> Hardware:
    return replace(LAPTOP, cpu=replace(LAPTOP.cpu, **changes))  # type: ignore[arg-type]


def test_a_laptop_without_a_gpu() -> None:
    assert row(LAPTOP, "Processor") == Row("Processor", "Intel Core i5-8250U", "4 cores, all used.")
    assert row(LAPTOP, "Instructions").value == "AVX2"
    assert row(LAPTOP, "Memory") == Row("Memory", "16.0 GiB", "11.0 GiB available now. Read at 21.0 GB/s.")
    card = row(LAPTOP, "Graphics card")
    assert card.value == "No NVIDIA graphics card found"
    assert "All work runs on the CPU" in card.meaning
    assert card.good  # nothing is wrong with it
    assert row(LAPTOP, "Disk").value == "212.0 GiB free"


def test_a_workstation_with_a_gpu() -> None:
    assert row(WORKSTATION, "Instructions").meaning.startswith("Fast")
    card = row(WORKSTATION, "Graphics card")
    assert card.value == "NVIDIA GeForce RTX 4090"
    assert card.meaning == "22.0 GiB of 24.0 GiB graphics memory free, PCIe 4 ×16, driver 570.86."


def test_a_card_that_cannot_be_used_says_why() -> None:
    card = row(HIDDEN_CARD, "Graphics card")
    assert card.value == "NVIDIA GeForce RTX 4090 (not used)"
    assert card.meaning == HIDDEN_CARD.gpu_message
    assert not card.good


def test_a_driver_that_does_not_answer_is_not_called_a_missing_gpu() -> None:
    broken = replace(LAPTOP, gpu_state=GpuState.BROKEN, gpu_message="The driver does not start.")
    card = row(broken, "Graphics card")
    assert card.value == "Not usable"
    assert not card.good


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"physical_cores": 1, "performance_cores": 1, "usable_cores": 1}, "1 core, all used."),
        (
            {"physical_cores": 16, "performance_cores": 16, "usable_cores": 16},
            "16 cores; one is left to other work.",
        ),
        ({"usable_cores": 2}, "4 cores, of which this program may use 2."),
        (
            {"physical_cores": 14, "performance_cores": 6, "usable_cores": 6},
            "6 fast and 8 efficiency cores; the fast ones do the work.",
        ),
    ],
)
def test_cores(changes: dict[str, object], text: str) -> None:
    assert row(with_cpu(**changes), "Processor").meaning == text


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512", "avx512_bf16", "amx"])
def test_every_instruction_set_has_words(isa: str) -> None:
    found = row(with_cpu(isa=isa, isas=(isa,)), "Instructions")
    assert found.value != isa
    assert found.meaning
    assert found.good is (isa != "portable")


def test_a_capped_instruction_set_is_said() -> None:
    capped = with_cpu(isa="avx2", isas=("portable", "avx2", "avx512"))
    assert "the processor can do more" in row(capped, "Instructions").meaning


def test_a_memory_limit_is_said() -> None:
    limited = replace(LAPTOP, memory=replace(LAPTOP.memory, limit=8 * GIB))
    assert "limited by a container" in row(limited, "Memory").meaning


def test_details_have_everything() -> None:
    text = details(WORKSTATION)
    cpu: CpuInfo = WORKSTATION.cpu
    for part in (cpu.name, "avx512_bf16", "570.86", "128.0 GiB", WORKSTATION.disk.path):
        assert part in text
