"""The router against the definition in float64, and its behaviour where rows are equal."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.models.router import route


@given(experts=st.integers(1, 16), seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=60, deadline=None)
def test_renormalised_softmax(experts, seed, data):
    top_k = data.draw(st.integers(1, min(4, experts)))
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 24, generator=generator)
    weight = torch.randn(experts, 24, generator=generator)
    ids, weights = route(x, weight, top_k)
    probabilities = torch.softmax(x.double() @ weight.double().T, dim=-1)
    chosen, expected = probabilities.topk(top_k)
    assert torch.equal(ids, expected)
    torch.testing.assert_close(weights.double(), chosen / chosen.sum(-1, keepdim=True), atol=1e-5, rtol=1e-5)


def test_equal_rows_are_chosen_as_whole_pairs():
    """As in the starter model: experts 2p and 2p + 1 have equal rows, and top-2 must never split a pair.

    In float32 the two logits of a pair are nearer to each other than to any other pair's. Rounded to bf16
    they would not be: that the inputs can tell the difference is checked too.
    """
    generator = torch.Generator().manual_seed(5)
    rows = torch.randn(4, 576, generator=generator).to(torch.bfloat16).float() / 24
    weight = rows.repeat_interleave(2, dim=0)
    x = torch.randn(5000, 576, generator=generator)
    ids, weights = route(x, weight, 2)
    assert torch.equal(ids[:, 0] // 2, ids[:, 1] // 2)
    torch.testing.assert_close(weights, torch.full_like(weights, 0.5), atol=1e-5, rtol=0)
    assert torch.equal(ids[:, 0] // 2, (x @ rows.T).argmax(-1))
    for row in x[:200].split(1):  # one token, as in decode
        one, _ = route(row, weight, 2)
        assert one[0, 0] // 2 == one[0, 1] // 2
    rounded = (x.bfloat16() @ weight.bfloat16().T).topk(2).indices
    assert (rounded[:, 0] // 2 != rounded[:, 1] // 2).any()
