"""A step that fails on the GPU's side leaves nothing behind: the next attempt computes what it should."""

import numpy as np
import pytest
import torch

from engine.models.loader import load_model
from engine.options import LoadOptions
from engine.placement import Placement
from engine.session import Session

IDS = torch.randint(0, 61, (200,), generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("policy", ["cpu", "stream"])
@pytest.mark.parametrize("call", [1, 2, 5])
def test_after_an_error_in_the_middle_of_a_layer_the_same_chunk_reads_as_ever(
    make_model, monkeypatch, policy, call
):
    model = make_model(hidden_size=256, num_attention_heads=4, intermediate_size=1024, num_local_experts=8)
    resident = np.zeros((2, 8), dtype=bool)
    resident[:, ::2] = True
    options = LoadOptions(device="cpu", threads=2, policy=policy)
    second = torch.device("cpu")
    with load_model(model.path, options, Placement(resident), expert_device=second) as loaded:
        expected = loaded.model.forward(IDS, loaded.model.new_cache(300), logits="all")
        loaded.residents.empty_slots()
        cache = loaded.model.new_cache(300)
        real, calls = loaded.residents.run, []

        def run(*arguments):
            calls.append(arguments)
            if len(calls) == call:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return real(*arguments)

        tickets = []
        submit = loaded.pool.submit_experts

        def submitted(*arguments):
            tickets.append(submit(*arguments))
            return tickets[-1]

        monkeypatch.setattr(loaded.residents, "run", run)
        monkeypatch.setattr(loaded.pool, "submit_experts", submitted)
        with pytest.raises(torch.OutOfMemoryError):
            loaded.model.forward(IDS, cache)
        assert bool(tickets) == (policy == "cpu")
        assert not any(ticket.running for ticket in tickets)  # or the CPU would write into the next attempt
        assert cache.length == 0
        ours = loaded.model.forward(IDS, cache, logits="all")
        assert len(calls) > call
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=1e-5)


def test_memory_that_runs_out_in_the_output_layer_leaves_the_cache_as_it_was(make_model, monkeypatch):
    """A chunk is then read anew, in parts: from where it began, not behind itself."""
    with load_model(make_model().path, LoadOptions(device="cpu", threads=1)) as loaded:
        prompt = IDS[:60].tolist()
        expected = [*Session(loaded.model, 100).read(prompt)][-1]
        real, refused = type(loaded.model.weights.output).__call__, []

        def output(layer, x):
            if layer is loaded.model.weights.output and not refused:
                refused.append(x)
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return real(layer, x)

        monkeypatch.setattr(type(loaded.model.weights.output), "__call__", output)
        session = Session(loaded.model, 100)
        chunks = [*session.read(prompt)]
        assert refused
        assert len(chunks) == 2
        assert session.used == len(prompt)
    np.testing.assert_allclose(chunks[-1], expected, atol=1e-5, rtol=1e-5)
