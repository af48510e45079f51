from dataclasses import replace

from engine import known_models
from engine.budget import kv_bytes, vram_budget
from engine.gpu_format import gpu_value_bytes
from engine.hardware.facts import GpuInfo
from engine.units import GIB

MIXTRAL, STARTER = known_models.mixtral_8x7b(), known_models.starter()
CARD = GpuInfo(0, "RTX", "GPU-1", 8 * GIB, 8 * GIB, "580", (8, 9), 1, 16, 4, 16)


def test_small_models_are_computed_in_float32_and_mixtral_in_bf16() -> None:
    assert gpu_value_bytes(STARTER) == 4
    assert gpu_value_bytes(MIXTRAL) == 2


def test_the_budget_counts_what_the_wider_format_takes() -> None:
    narrow = replace(STARTER, other_bytes=1 * GIB)
    wide = {item.label: item.nbytes for item in vram_budget(CARD, STARTER, 1000).base}
    assert wide["Everything but the experts"] == 2 * STARTER.other_bytes
    assert wide["KV cache for 1000 tokens"] == 2 * kv_bytes(narrow, 1000, cuda=True)
    plain = {item.label: item.nbytes for item in vram_budget(CARD, narrow, 1000).base}
    assert plain["Everything but the experts"] == narrow.other_bytes
