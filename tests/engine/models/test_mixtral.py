"""The model's behaviour around the arithmetic, which the parity tests cover."""

import pytest
import torch

from engine.errors import GenerationError
from engine.events import Phase, Place
from engine.models.loader import load_model
from engine.options import LoadOptions


@pytest.fixture(scope="module")
def loaded(make_model):
    with load_model(make_model().path, LoadOptions(device="cpu", threads=2)) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def ids():
    return torch.randint(0, 61, (40,), generator=torch.Generator().manual_seed(0))


def test_last_all_and_none(loaded, ids):
    model = loaded.model
    every = model.forward(ids, model.new_cache(40), logits="all")
    last = model.forward(ids, model.new_cache(40))
    assert every.shape == (40, 61)
    assert last.shape == (1, 61)
    assert every.dtype == last.dtype == torch.float32
    torch.testing.assert_close(every[-1:], last, atol=1e-5, rtol=1e-5)
    cache = model.new_cache(40)
    assert model.forward(ids, cache, logits="none") is None
    assert cache.length == 40


@pytest.mark.parametrize("chunk", [1, 7, 13, 40, 100])
def test_prefill_in_chunks_equals_one_forward(loaded, ids, chunk):
    model = loaded.model
    whole = model.forward(ids, model.new_cache(50))
    cache = model.new_cache(50)
    for part in ids.split(chunk):
        logits = model.forward(part, cache, phase=Phase.PREFILL)
    torch.testing.assert_close(logits, whole, atol=1e-4, rtol=1e-4)
    assert cache.length == 40


def test_a_cut_cache_continues_as_a_fresh_one(loaded, ids):
    """Prefix reuse: cut to the common prefix, then read something else."""
    model = loaded.model
    cache = model.new_cache(60)
    model.forward(ids, cache)
    cache.truncate(25)
    other = (ids[25:] + 1) % 61
    reused = model.forward(other, cache)
    fresh = model.forward(torch.cat((ids[:25], other)), model.new_cache(60))
    torch.testing.assert_close(reused, fresh, atol=1e-4, rtol=1e-4)


def test_logits_do_not_change_afterwards(loaded, ids):
    """The buffers of the one-token path are reused; what a caller holds is not among them."""
    model = loaded.model
    cache = model.new_cache(40)
    model.forward(ids[:10], cache)
    first = model.forward(ids[10:11], cache)
    kept = first.clone()
    model.forward(ids[11:12], cache)
    assert torch.equal(first, kept)


def test_no_room_leaves_the_cache_as_it_was(loaded, ids):
    model = loaded.model
    cache = model.new_cache(30)
    model.forward(ids[:20], cache)
    with pytest.raises(GenerationError, match="does not fit"):
        model.forward(ids[:11], cache)
    assert cache.length == 20


def test_phases_are_counted_apart(loaded, ids):
    """A prompt's last chunk of one token is prefill; a token after others is decode."""
    model, counters = loaded.model, loaded.counters
    counters.reset()
    cache = model.new_cache(40)
    for part in ids[:11].split(10):
        model.forward(part, cache, phase=Phase.PREFILL)
    prefill = counters.snapshot()
    assert prefill.counts[Phase.DECODE].sum() == 0
    assert prefill.counts[Phase.PREFILL].sum() > 0
    model.forward(ids[11:12], cache)
    hits = counters.snapshot()
    assert hits.counts[Phase.PREFILL].sum() == prefill.counts.sum()
    assert hits.total(Place.CPU, Phase.DECODE) == 2 * 2
    assert (hits.counts[Phase.DECODE].sum(axis=(1, 2)) == 2).all()


def test_no_gradient_is_recorded(loaded, ids):
    logits = loaded.model.forward(ids, loaded.model.new_cache(40))
    assert not logits.requires_grad
