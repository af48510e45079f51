"""Collecting the experts' results and RMSNorm against float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from kernels.gpu.residual import collect_and_norm, normalise
from tests.kernels.gpu.devices import DEVICE, EXAMPLES


def normed_exactly(x, norm, eps):
    return functional.rms_norm(x.double(), (x.shape[1],), norm.double(), eps)


def close(normed, expected):
    tolerance = 1e-5 if normed.dtype == torch.float32 else 1e-2
    torch.testing.assert_close(normed.double(), expected, rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("tokens", "hidden"), [(1, 16), (3, 70), (2, 4096), (1, 1000)])
def test_norm(tokens, hidden, dtype, device):
    g = torch.Generator().manual_seed(hidden)
    x = (torch.randn(tokens, hidden, generator=g) * 3).to(device)
    norm = torch.rand(hidden, generator=g).to(device)
    normed = torch.full((tokens, hidden), torch.nan, dtype=dtype, device=device)
    before = x.clone()
    normalise(x, norm, 1e-5, normed)
    assert torch.equal(x, before)
    close(normed, normed_exactly(x, norm, 1e-5))


@given(
    tokens=st.integers(1, 5),
    hidden=st.sampled_from([16, 130, 300]),
    experts=st.sampled_from([1, 4, 8, 70]),
    splits=st.sampled_from([(8, 8), (1, 3)]),
    host=st.booleans(),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
@settings(max_examples=EXAMPLES)
def test_collecting(tokens, hidden, experts, splits, host, seed, data):
    """Each pair's result counts once, from where its expert ran, and nothing else is read as a number."""
    top_k = data.draw(st.integers(1, min(3, experts)))
    g = torch.Generator().manual_seed(seed)
    # Where each expert runs: 0 on the GPU, 1 copied in, 2 on the CPU.
    runs = torch.randint(0, 3, (experts,), generator=g)
    ids = torch.stack([torch.randperm(experts, generator=g)[:top_k] for _ in range(tokens)]).int()
    if tokens > 1:
        ids[-1] = -1  # padding
    table = torch.where(runs == 0, torch.arange(experts), -1).int()
    control = torch.full((1 + 2 * experts,), -1, dtype=torch.int32)
    control[0] = int(host)
    for expert in (runs == 1).nonzero().flatten().tolist():
        control[1 + expert] = [0, 5, -2][expert % 3]  # in a slot, or run already
    x = torch.randn(tokens, hidden, generator=g)
    host_out = torch.randn(tokens, hidden, generator=g) if host else torch.full((tokens, hidden), torch.nan)
    expected = x.double() + (host_out.double() if host else 0)
    scratch = []
    for place, count in enumerate(splits):
        parts = torch.full((tokens * top_k + 1, count, hidden), torch.nan)
        for pair, expert in enumerate(ids.flatten().tolist()):
            if expert >= 0 and runs[expert] == place:
                parts[pair] = torch.randn(count, hidden, generator=g)
                expected[pair // top_k] += parts[pair].double().sum(0)
        scratch.append(parts.to(DEVICE))
    norm = torch.rand(hidden, generator=g).to(DEVICE)
    x = x.to(DEVICE)
    normed = torch.empty(tokens, hidden, device=DEVICE)
    rest = (table, scratch[1], ids, control, host_out)
    collect_and_norm(x, scratch[0], *(tensor.to(DEVICE) for tensor in rest), norm, 1e-6, normed)
    torch.testing.assert_close(x.double().cpu(), expected, rtol=1e-5, atol=1e-5)
    close(normed, normed_exactly(x, norm, 1e-6))


def test_too_few_words_or_pairs_are_refused(device):
    x = torch.zeros(2, 16, device=device)
    parts = torch.zeros(4, 8, 16, device=device)
    ids = torch.zeros(2, 2, dtype=torch.int32, device=device)
    control = torch.zeros(65, dtype=torch.int32, device=device)

    def collect(experts, residents):
        table = torch.full((experts,), -1, dtype=torch.int32, device=device)
        norm = torch.ones(16, device=device)
        collect_and_norm(x, residents, table, parts, ids, control, x, norm, 1e-5, torch.empty_like(x))

    with pytest.raises(ValueError, match="cannot tell about 65 experts"):
        collect(65, parts)
    with pytest.raises(ValueError, match="results of 4 pairs"):
        collect(8, parts[:3])
