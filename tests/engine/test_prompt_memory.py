"""How long a prompt's chunks are, and what they are planned to take."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine import known_models
from engine.budget import vram_budget
from engine.hardware import GpuInfo
from engine.prompt_memory import (
    CPU_CHUNK,
    LEAST_CHUNK,
    MOST_CHUNK,
    cpu_workspace_bytes,
    prefill_chunk,
    workspace_bytes,
    workspace_room,
)
from engine.units import GIB

MIXTRAL, STARTER = known_models.mixtral_8x7b().config, known_models.starter().config
models = st.sampled_from([MIXTRAL, STARTER])
contexts = st.integers(16, 32768)
budgets = st.integers(0, 100 * GIB)
left_bytes = st.integers(-10 * GIB, 100 * GIB)
expert_bytes = st.integers(0, 200 * GIB)
MUCH = {"left": 100 * GIB, "experts": 200 * GIB}  # and many of them without a place


@pytest.mark.parametrize(("gib", "least", "most"), [(6, 1500, 2500), (12, 3500, 4096), (24, 4096, 4096)])
def test_mixtral_reads_a_prompt_in_long_chunks(gib, least, most):
    room = workspace_room(MIXTRAL, 4096, gib * GIB, 2, **MUCH)
    assert least <= prefill_chunk(MIXTRAL, 4096, room, 2) <= most


@pytest.mark.parametrize(("missing", "least", "most"), [(16, 4096, 4096), (4, 1000, 1500), (0.1, 512, 512)])
def test_the_less_is_copied_for_each_chunk_the_shorter_it_may_be(missing, least, most):
    room = workspace_room(MIXTRAL, 4096, 24 * GIB, 2, left=20 * GIB, experts=int((20 + missing) * GIB))
    assert least <= prefill_chunk(MIXTRAL, 4096, room, 2) <= most


def test_what_no_expert_needs_makes_chunks_longer():
    whole = workspace_bytes(MIXTRAL, 4096, MOST_CHUNK, 2)
    for spare in (whole, 10 * GIB):
        assert workspace_room(MIXTRAL, 4096, 40 * GIB, 2, left=20 * GIB + spare, experts=20 * GIB) == whole
    half = whole // 2
    assert workspace_room(MIXTRAL, 4096, 40 * GIB, 2, left=20 * GIB + half, experts=20 * GIB) == half


@given(models, contexts, budgets, st.sampled_from([2, 4]), left_bytes, expert_bytes)
def test_the_chunk_fits_into_its_room_and_the_room_is_a_twelfth(
    config, context, available, value_bytes, left, experts
):
    room = workspace_room(config, context, available, value_bytes, left=left, experts=experts)
    chunk = prefill_chunk(config, context, room, value_bytes)
    assert min(LEAST_CHUNK, context) <= chunk <= min(MOST_CHUNK, context)
    assert workspace_bytes(config, context, chunk, value_bytes) <= room
    if chunk > LEAST_CHUNK:
        assert room <= available / 12
        assert room <= max((experts - left) / 12, left - experts)
        assert room <= left
    longer = chunk + 1
    if longer <= min(MOST_CHUNK, context):
        assert workspace_bytes(config, context, longer, value_bytes) > room


@given(models, contexts, budgets, st.integers(0, 10 * GIB), st.integers(0, 1000))
def test_more_memory_allows_no_shorter_chunk_and_more_context_takes_no_less_room(
    config, context, available, more, longer
):
    room = workspace_room(config, context, available, 2, **MUCH)
    larger = workspace_room(config, context, available + more, 2, **MUCH)
    assert room <= larger <= room + more
    assert prefill_chunk(config, context, room, 2) <= prefill_chunk(config, context, larger, 2)
    assert workspace_room(config, context + longer, available, 2, **MUCH) >= room


@given(models, contexts, budgets, left_bytes, expert_bytes, st.integers(0, 10 * GIB))
def test_more_memory_leaves_no_less_for_experts(config, context, available, left, experts, more):
    room = workspace_room(config, context, available, 2, left=left, experts=experts)
    larger = workspace_room(config, context, available + more, 2, left=left + more, experts=experts)
    assert larger <= room + more


def test_a_card_with_room_for_short_chunks_alone_is_used():
    """Mixtral on a card of 6 GB with a desktop on it: a twelfth for prompts would be more than is left."""
    mixtral, card = known_models.mixtral_8x7b(), GpuInfo(0, "RTX", "GPU-1", 16 * GIB, 16 * GIB, "580", (8, 9))

    def budget(given):
        return vram_budget(card, mixtral, 4096, given)

    least = workspace_bytes(MIXTRAL, 4096, LEAST_CHUNK, 2)
    others = sum(item.nbytes for item in budget(6 * GIB).base if not item.label.startswith("Workspace"))
    tight = budget(others + least)
    assert (tight.fits, tight.slots, tight.prefill_chunk) == (True, 0, LEAST_CHUNK)
    assert not budget(others + least - 1).fits
    more = budget(others + 2 * least)
    assert more.fits
    assert more.prefill_chunk > LEAST_CHUNK


def test_the_cpu_reads_short_chunks():
    assert CPU_CHUNK < LEAST_CHUNK
    assert cpu_workspace_bytes(STARTER, 4096) < 64 << 20


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("start", [0, 1024])
def test_a_chunk_on_a_gpu_takes_no_more_than_planned(make_model, start):
    """A first chunk and a later one, of a model whose hidden states are as in Mixtral's proportions."""
    from engine.models.loader import load_model
    from engine.options import LoadOptions

    context, chunk = 3072, 2048
    model = make_model(
        hidden_size=512,
        intermediate_size=1792,
        num_attention_heads=16,
        num_key_value_heads=4,
        max_position_embeddings=context,
    )
    with load_model(
        model.path, LoadOptions(device="cuda", policy="stream"), gpu_format=torch.bfloat16
    ) as loaded:
        cache = loaded.model.new_cache(context)
        ids = torch.randint(0, 61, (start + chunk,), generator=torch.Generator().manual_seed(0))
        if start:
            loaded.model.forward(ids[:start], cache, logits="none")
        loaded.model.forward(ids[start : start + 16], cache, logits="none")
        cache.truncate(start)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        loaded.model.forward(ids[start:], cache)
        taken = torch.cuda.max_memory_allocated() - before
    planned = workspace_bytes(model.config, context, chunk, 2)
    print(f"start {start}: {taken / 2**20:.1f} MiB of {planned / 2**20:.1f} planned")
    assert taken <= planned
