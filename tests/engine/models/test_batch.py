"""Sequences decoded together have the logits they have alone, and an expert runs once for all of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.errors import GenerationError
from engine.events import Phase
from engine.kvbatch import SequenceBatch
from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import place_uniform
from kernels.isa import Isa, available_isas

STEPS = 12


@pytest.fixture(scope="module", params=[None, 1, 5], ids=["full", "window 1", "window 5"])
def loaded(make_model, request):
    model = make_model(sliding_window=request.param, num_local_experts=8)
    isa = min(max(available_isas()), Isa.AVX2)  # float32 activations for any number of tokens
    with load_model(model.path, LoadOptions(device="cpu", threads=2), isa=isa) as loaded:
        yield loaded


def random_ids(*size, seed=0):
    return torch.randint(0, 61, size, generator=torch.Generator().manual_seed(seed))


def add(model, batch, ids):
    prompt = batch.claim(len(ids))
    model.forward(ids, prompt.cache, logits="none", phase=Phase.PREFILL)
    return batch.add(prompt)


def alone(model, ids):
    """Logits of every position of one sequence, read in one forward."""
    return model.forward(ids, model.new_cache(len(ids)), logits="all")


@pytest.mark.parametrize("lengths", [[1], [9], [1, 6, 17], [4, 4, 4, 4], [30, 2, 5, 1, 12]])
def test_sequences_of_different_lengths_have_the_logits_they_have_alone(loaded, lengths):
    model = loaded.model
    batch = SequenceBatch(model.new_cache(140), len(lengths))
    ids = [random_ids(length + STEPS, seed=length) for length in lengths]
    for sequence, length in zip(ids, lengths, strict=True):
        add(model, batch, sequence[:length])
    expected = [alone(model, sequence) for sequence in ids]
    for step in range(STEPS):
        tokens = torch.stack([sequence[n + step] for sequence, n in zip(ids, lengths, strict=True)])
        logits = model.forward_batch(tokens, batch)
        assert logits.shape == (len(lengths), 61)
        assert logits.dtype == torch.float32
        want = torch.stack([rows[n + step] for rows, n in zip(expected, lengths, strict=True)])
        torch.testing.assert_close(logits, want, atol=1e-4, rtol=1e-4)


def test_forks_and_leavers_keep_their_own_history(loaded):
    model = loaded.model
    random = np.random.default_rng(3)
    cache = model.new_cache(90)
    prompt = random_ids(11)
    model.forward(prompt, cache, phase=Phase.PREFILL)
    batch = SequenceBatch.after(cache, 4)
    histories = [prompt.tolist()]
    for _ in range(25):
        parents = random.integers(0, len(histories), random.integers(1, 5)).tolist()
        batch.reorder(parents)
        tokens = torch.from_numpy(random.integers(0, 61, len(parents)))
        logits = model.forward_batch(tokens, batch)
        histories = [[*histories[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)]
        want = torch.stack([alone(model, torch.tensor(history))[-1] for history in histories])
        torch.testing.assert_close(logits, want, atol=1e-4, rtol=1e-4)


def test_an_expert_runs_once_for_all_beams(loaded):
    model, config = loaded.model, loaded.model.config
    cache = model.new_cache(40)
    model.forward(random_ids(6), cache, phase=Phase.PREFILL)
    batch = SequenceBatch.after(cache, 8)
    batch.reorder([0] * 8)
    loaded.counters.reset()
    model.forward_batch(torch.full((8,), 7), batch)  # eight equal beams need what one needs
    counts = loaded.counters.snapshot().counts
    assert counts[Phase.PREFILL].sum() == 0
    assert (counts[Phase.DECODE].sum((1, 2)) == config.top_k).all()
    assert counts.max() == 1


def test_without_room_nothing_changes(loaded):
    model = loaded.model
    cache = model.new_cache(8)
    model.forward(random_ids(6), cache, phase=Phase.PREFILL)
    batch = SequenceBatch.after(cache, 3)
    batch.reorder([0] * 3)
    with pytest.raises(GenerationError, match="2 places are free, and 3 are needed"):
        model.forward_batch(torch.tensor([1, 2, 3]), batch)
    batch.reorder([0, 0])
    logits = model.forward_batch(torch.tensor([1, 1]), batch)
    want = alone(model, torch.cat((random_ids(6), torch.tensor([1]))))[-1]
    torch.testing.assert_close(logits, want.expand(2, -1), atol=1e-4, rtol=1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA GPU")
@pytest.mark.parametrize("number_format", [torch.float32, torch.bfloat16])
def test_on_a_gpu_sequences_have_the_logits_they_have_alone(make_model, number_format):
    model = make_model(sliding_window=9, num_local_experts=8)
    placement = place_uniform(2, 8, 8)
    random = np.random.default_rng(4)
    tolerance = 1e-3 if number_format == torch.float32 else 5e-2
    options = LoadOptions(device="cuda", threads=2)
    with load_model(model.path, options, placement, gpu_format=number_format) as loaded:
        model = loaded.model
        batch = SequenceBatch(model.new_cache(200), 8)
        histories = [random_ids(length, seed=length).tolist() for length in (3, 14, 8)]
        for history in histories:
            add(model, batch, torch.tensor(history))
        for _ in range(20):
            parents = random.integers(0, len(histories), random.integers(1, 9)).tolist()
            batch.reorder(parents)
            tokens = torch.from_numpy(random.integers(0, 61, len(parents)))
            logits = model.forward_batch(tokens, batch)
            histories = [
                [*histories[parent], int(token)] for parent, token in zip(parents, tokens, strict=True)
            ]
            want = torch.stack([alone(model, torch.tensor(history))[-1] for history in histories])
            errors = (logits - want).norm(dim=1) / want.norm(dim=1)
            assert errors.median() <= tolerance  # a router's near tie may go the other way in bf16
            assert number_format == torch.bfloat16 or errors.max() <= tolerance
