"""The router's kernel against the definition in float64 and against the CPU's router."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from engine.models import router as on_cpu
from kernels.gpu.router import Routed, route
from tests.kernels.gpu.devices import DEVICE, EXAMPLES, ON_GPU


def places(tokens, hidden, top_k, dtype=torch.float32):
    def on_host(*size, dtype):
        return torch.empty(size, dtype=dtype, pin_memory=ON_GPU)

    return Routed(
        torch.empty(tokens, hidden, dtype=dtype, device=DEVICE),
        torch.empty(tokens, top_k, dtype=torch.int32, device=DEVICE),
        torch.empty(tokens, top_k, device=DEVICE),
        on_host(tokens, hidden, dtype=torch.float32),
        on_host(tokens, top_k, dtype=torch.int32),
        on_host(tokens, top_k, dtype=torch.float32),
    )


def synchronise():
    if ON_GPU:
        torch.cuda.synchronize()


def check(to, x, norm, weight, eps, top_k, dtype=torch.float32):
    """`x`: float32 on the CPU."""
    synchronise()
    normed = functional.rms_norm(x.double(), (x.shape[1],), norm.double(), eps)
    probabilities = torch.softmax(normed @ weight.double().T, dim=-1)
    chosen, ids = probabilities.topk(top_k)
    assert torch.equal(to.ids.cpu().long(), ids)
    expected = chosen / chosen.sum(-1, keepdim=True)
    torch.testing.assert_close(to.weights.cpu().double(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(to.host_normed.double(), normed, rtol=1e-5, atol=1e-5)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(to.normed.cpu().double(), normed, rtol=tolerance, atol=tolerance)
    assert torch.equal(to.host_ids, to.ids.cpu())
    assert torch.equal(to.host_weights, to.weights.cpu())


@given(
    tokens=st.integers(1, 5),
    hidden=st.sampled_from([16, 60, 576]),
    experts=st.integers(1, 20),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 10**6),
    data=st.data(),
)
@settings(max_examples=EXAMPLES)
def test_any_shape(tokens, hidden, experts, dtype, seed, data):
    top_k = data.draw(st.integers(1, min(4, experts)))
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(tokens, hidden, generator=g)
    norm = torch.rand(hidden, generator=g) + 0.5
    weight = torch.randn(experts, hidden, generator=g)
    to = places(tokens, hidden, top_k, dtype)
    route(x.to(DEVICE), norm.to(DEVICE), weight.to(DEVICE), 1e-5, to)
    check(to, x, norm, weight, 1e-5, top_k, dtype)


@pytest.mark.parametrize(("hidden", "experts"), [(4096, 8), (4096, 64), (300, 500)])
def test_more_than_a_program_holds(hidden, experts):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(2, hidden, generator=g)
    norm, weight = torch.rand(hidden, generator=g), torch.randn(experts, hidden, generator=g)
    to = places(2, hidden, 2)
    route(x.to(DEVICE), norm.to(DEVICE), weight.to(DEVICE), 1e-5, to)
    check(to, x, norm, weight, 1e-5, 2)


def test_equal_rows_are_chosen_as_whole_pairs_in_order():
    """As in the starter model; of equal logits the lower id comes first."""
    g = torch.Generator().manual_seed(5)
    weight = torch.randn(4, 576, generator=g).to(torch.bfloat16).float().repeat_interleave(2, dim=0) / 24
    x = torch.randn(16, 576, generator=g)
    to = places(16, 576, 2)
    route(x.to(DEVICE), torch.ones(576, device=DEVICE), weight.to(DEVICE), 1e-5, to)
    synchronise()
    best, _ = on_cpu.route(functional.rms_norm(x, (576,), eps=1e-5), weight, 2)
    assert torch.equal(to.host_ids[:, 0].long(), best.min(-1).values)
    assert torch.equal(to.host_ids[:, 0] + 1, to.host_ids[:, 1])
    assert (to.host_ids[:, 0] % 2 == 0).all()
    assert (to.host_weights == 0.5).all()


def test_forced_experts_keep_their_weights():
    g = torch.Generator().manual_seed(6)
    x, weight = torch.randn(3, 64, generator=g), torch.randn(8, 64, generator=g)
    forced = torch.tensor([[7, 0], [3, 4], [1, 6]], dtype=torch.int32)
    to = places(3, 64, 2)
    norm = torch.ones(64, device=DEVICE)
    route(x.to(DEVICE), norm, weight.to(DEVICE), 1e-5, to, forced=forced.to(DEVICE))
    synchronise()
    logits = functional.rms_norm(x.double(), (64,), eps=1e-5) @ weight.double().T
    expected = torch.softmax(logits.gather(1, forced.long()), dim=-1)
    assert torch.equal(to.host_ids, forced)
    torch.testing.assert_close(to.host_weights.double(), expected, rtol=1e-4, atol=1e-5)


def test_padding_goes_nowhere():
    x, weight = torch.randn(3, 64), torch.randn(8, 64)
    to = places(3, 64, 2)
    positions = torch.tensor([5, -1, 0], dtype=torch.int32, device=DEVICE)
    norm = torch.ones(64, device=DEVICE)
    route(x.to(DEVICE), norm, weight.to(DEVICE), 1e-5, to, positions=positions)
    synchronise()
    assert (to.host_ids[1] == -1).all()
    assert (to.host_weights[1] == 0).all()
    assert (to.host_ids[[0, 2]] >= 0).all()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, in the interpreter
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_ids_are_of_experts_whatever_the_numbers(value):
    x = torch.full((1, 64), value)
    to = places(1, 64, 2)
    route(x.to(DEVICE), torch.ones(64, device=DEVICE), torch.ones(3, 64, device=DEVICE), 1e-5, to)
    synchronise()
    assert to.host_ids.tolist() == [[0, 1]]


def test_wrong_shapes_are_refused():
    x, norm = torch.zeros(2, 64, device=DEVICE), torch.ones(64, device=DEVICE)
    with pytest.raises(ValueError, match="does not fit"):
        route(x, norm, torch.zeros(8, 32, device=DEVICE), 1e-5, places(2, 64, 2))
    with pytest.raises(ValueError, match="do not fit 2 tokens and 1 experts"):
        route(x, norm, torch.zeros(1, 64, device=DEVICE), 1e-5, places(2, 64, 2))
