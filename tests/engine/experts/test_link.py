"""Grouping of a step's tokens by expert, and the way of rows to the host and back."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.experts import link as links
from engine.experts.link import CudaLink, DirectLink, Groups

ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@given(
    st.integers(1, 6).flatmap(lambda k: st.lists(st.permutations(range(6)).map(lambda p: p[:k]), min_size=1))
)
def test_every_pair_is_in_its_experts_group(routing):
    ids = np.array(routing, dtype=np.int64)
    groups = Groups.of(ids, 6)
    for expert in range(6):
        mine = slice(groups.bounds[expert], groups.bounds[expert + 1])
        rows, ranks = np.nonzero(ids == expert)
        assert groups.counts[expert] == len(rows)
        assert groups.tokens[mine].tolist() == rows.tolist()
        assert groups.pairs[mine].tolist() == (rows * ids.shape[1] + ranks).tolist()
    assert groups.tokens.dtype == np.int32


class Nothing:
    """An event or a stream without a GPU: all has happened already."""

    def record(self, stream):
        pass

    def synchronize(self):
        pass


@pytest.fixture(params=["cpu", "cuda without a GPU", pytest.param("cuda", marks=ON_GPU)])
def link(request, monkeypatch):
    """Each way to the host; the GPU's buffers and their turns can be tried without one."""
    if request.param == "cpu":
        return DirectLink(5)
    if request.param == "cuda":
        return CudaLink(5, 2, torch.device("cuda", torch.cuda.current_device()))
    monkeypatch.setattr(torch.cuda, "Event", Nothing)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Nothing())
    monkeypatch.setattr(links, "_pinned_like", lambda rows, count: rows.new_full((count, rows.shape[1]), 77))
    return CudaLink(5, 2, torch.device("cpu"))


@pytest.mark.parametrize("sizes", [[3, 1, 0, 4, 4, 2, 9, 1, 1], [1] * 5, [8, 2, 8]])
@pytest.mark.parametrize("routed", [True, False])
def test_rows_arrive_and_results_are_added_where_they_belong(link, sizes, routed):
    """Layer after layer: no result of one is found in another's, however the buffers grow and take turns."""
    device = getattr(link, "_device", torch.device("cpu"))
    generator = torch.Generator().manual_seed(3)
    for count in sizes:
        if routed:
            ids = torch.randint(0, 9, (count, 2), generator=generator)
            shares = torch.rand(count, 2, generator=generator)
            there = link.routing(ids.to(device), shares.to(device))
            assert torch.equal(there[0], ids)
            assert torch.equal(there[1], shares)
        rows = torch.randn(count, 5, generator=generator)
        host_x, host_out = link.send(rows.to(device))
        assert torch.equal(host_x, rows)
        assert host_out.shape == rows.shape
        assert not host_out.any()
        host_out.copy_(2 * rows)
        out = torch.ones(12, 5, device=device)
        tokens = torch.randperm(12, generator=generator)[:count]
        half = count // 2
        link.add_results(out, tokens[:half].to(device), 0)
        link.add_results(out, tokens[half:].to(device), half)
        expected = torch.ones(12, 5)
        expected[tokens] += 2 * rows
        assert torch.equal(out.cpu(), expected)


def test_the_results_of_the_layer_before_stay_until_its_successor_has_begun(monkeypatch):
    """The GPU may still be reading them while the next layer's are made."""
    monkeypatch.setattr(torch.cuda, "Event", Nothing)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Nothing())
    monkeypatch.setattr(links, "_pinned_like", lambda rows, count: rows.new_empty(count, rows.shape[1]))
    link = CudaLink(5, 2, torch.device("cpu"))
    _, first = link.send(torch.ones(3, 5))
    first.fill_(1.0)
    _, second = link.send(torch.ones(2, 5))
    second.fill_(2.0)
    assert (first == 1.0).all()
    _, third = link.send(torch.ones(3, 5))
    assert third.data_ptr() == first.data_ptr()
    assert not third.any()
    assert (second == 2.0).all()
