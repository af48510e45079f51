"""Attention over rows of a cache against torch's in float64, and the rotation against the CPU's."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from engine.models.rope import RotaryTable
from kernels.gpu.attention import AttentionScratch, attend, fits
from kernels.gpu.rope import rope_and_store
from tests.kernels.gpu.devices import DEVICE, EXAMPLES


class Case:
    """Sequences whose positions lie anywhere in a cache; what lies elsewhere is not a number."""

    def __init__(self, heads, kv_heads, head_dim, positions, dtype=torch.float32, capacity=None, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, head_dim
        tokens, self.capacity = len(positions), capacity or max(positions) + 2
        self.positions = torch.tensor(positions, dtype=torch.int32, device=DEVICE)
        width = (heads + 2 * kv_heads) * head_dim
        self.qkv = torch.randn(tokens, width, generator=g).to(DEVICE)
        rows = torch.randperm(tokens * self.capacity, generator=g).view(tokens, -1)
        self.rows = rows.int().to(DEVICE)
        store = torch.randn(2, kv_heads, tokens * self.capacity, head_dim, generator=g)
        for token, position in enumerate(positions):
            store[:, :, rows[token, position + 1 :]] = torch.nan
        self.store = store.to(DEVICE, dtype)
        rope = RotaryTable(head_dim, 1e4, DEVICE)
        self.rope = rope
        self.cos, self.sin = (table.view(-1, head_dim) for table in rope.rows(0, self.capacity))

    def attend(self, window, out):
        scratch = AttentionScratch.make(
            len(self.qkv), self.heads, self.kv_heads, self.head_dim, self.capacity, DEVICE
        )
        scratch.sums.fill_(torch.nan)
        attend(self.qkv, self.store, self.rows, self.positions, window, scratch, out)
        return scratch

    def expected(self, window):
        """float64 [tokens, heads · head_dim]."""
        out = torch.zeros(len(self.qkv), self.heads, self.head_dim, dtype=torch.float64, device=DEVICE)
        for token, position in enumerate(self.positions.tolist()):
            first = 0 if window is None else max(0, position - window + 1)
            if position < 0:
                continue
            queries = self.qkv[token, : self.heads * self.head_dim].to(self.store.dtype).double()
            seen = self.rows[token, first : position + 1].long()
            keys, values = self.store[:, :, seen].double().unbind(0)
            out[token] = functional.scaled_dot_product_attention(
                queries.view(self.heads, 1, -1), keys, values, enable_gqa=True
            )[:, 0]
        return out.flatten(1)


@given(
    groups=st.sampled_from([(1, 1), (2, 1), (4, 2), (3, 3), (12, 1), (20, 1)]),
    head_dim=st.sampled_from([2, 6, 16, 34]),
    positions=st.lists(st.integers(-1, 200), min_size=1, max_size=4),
    window=st.sampled_from([None, 1, 2, 70, 500]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=EXAMPLES)
def test_every_sequence_sees_exactly_its_positions(groups, head_dim, positions, window, dtype, seed):
    case = Case(*groups, head_dim, positions, dtype, seed=seed)
    out = torch.full((len(positions), groups[0] * head_dim), torch.nan, dtype=torch.float32, device=DEVICE)
    case.attend(window, out)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(out.double(), case.expected(window), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(8, 2, 128), (2, 1, 256), (9, 3, 64)])
def test_common_sizes(heads, kv_heads, head_dim, dtype):
    case = Case(heads, kv_heads, head_dim, [700, 63, 64], dtype)
    out = torch.empty(3, heads * head_dim, dtype=dtype, device=DEVICE)
    scratch = case.attend(None, out)
    assert scratch.sums.shape[2] > 1
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(out.double(), case.expected(None), rtol=tolerance, atol=tolerance)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs an NVIDIA GPU")
def test_a_long_context():
    case = Case(32, 8, 128, [32767, 20000], torch.bfloat16, capacity=32768)
    out = torch.empty(2, 4096, device=DEVICE)
    case.attend(None, out)
    torch.testing.assert_close(out.double(), case.expected(None), rtol=1e-2, atol=1e-3)


@given(
    groups=st.sampled_from([(1, 1), (4, 2), (3, 3)]),
    head_dim=st.sampled_from([2, 6, 16, 34, 128]),
    positions=st.lists(st.integers(-1, 60), min_size=1, max_size=4),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=EXAMPLES)
def test_rotation(groups, head_dim, positions, dtype, seed):
    heads, kv_heads = groups
    case = Case(heads, kv_heads, head_dim, positions, dtype, seed=seed)
    given_qkv, before = case.qkv.clone(), case.store.clone()
    rope_and_store(case.qkv, case.cos, case.sin, case.positions, case.rows, case.store)
    expected = before.clone()
    for token, position in enumerate(positions):
        if position < 0:
            assert torch.equal(case.qkv[token], given_qkv[token])
            continue
        turned = given_qkv[token].view(1, -1, head_dim).clone()
        case.rope.rotate_(turned[:, : heads + kv_heads], *case.rope.rows(position, 1))
        queries, rest = turned[0].split([heads, 2 * kv_heads])
        mine = case.qkv[token].view(-1, head_dim)[:heads]
        torch.testing.assert_close(mine, queries, rtol=1e-5, atol=1e-5)
        expected[:, :, case.rows[token, position]] = rest.view(2, kv_heads, head_dim).to(dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(case.store, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_one_layer_of_a_larger_cache():
    """The cache of a layer is a view: other layers and unused rows stay as they are."""
    case = Case(4, 2, 16, [5, 9])
    whole = torch.full((3, *case.store.shape), torch.nan, device=DEVICE)
    whole[1] = case.store
    case.store = whole[1]
    rope_and_store(case.qkv, case.cos, case.sin, case.positions, case.rows, case.store)
    out = torch.empty(2, 64, device=DEVICE)
    case.attend(None, out)
    torch.testing.assert_close(out.double(), case.expected(None), rtol=1e-5, atol=1e-5)
    assert whole[[0, 2]].isnan().all()


def test_wrong_shapes_are_refused():
    case = Case(4, 2, 16, [5])
    with pytest.raises(ValueError, match="do not fit a cache"):
        rope_and_store(
            case.qkv[:, :48].contiguous(), case.cos, case.sin, case.positions, case.rows, case.store
        )
    wide = torch.empty(*case.store.shape[:3], 32, device=DEVICE)
    with pytest.raises(ValueError, match="follow each other"):
        rope_and_store(case.qkv, case.cos, case.sin, case.positions, case.rows, wide[..., :16])
    scratch = AttentionScratch.make(1, 4, 2, 8, 64, DEVICE)
    with pytest.raises(ValueError, match="scratch for"):
        attend(
            case.qkv, case.store, case.rows, case.positions, None, scratch, torch.empty(1, 64, device=DEVICE)
        )


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "dtype", "fitting"),
    [
        (32, 8, 128, torch.bfloat16, True),
        (32, 1, 512, torch.bfloat16, True),
        (33, 1, 512, torch.bfloat16, False),
        (2, 2, 514, torch.bfloat16, False),
        (32, 1, 256, torch.float32, True),
        (64, 1, 256, torch.float32, False),
        (2, 2, 258, torch.float32, False),
        (2, 1, 512, torch.float32, False),
        (129, 1, 16, torch.float32, False),
    ],
)
def test_heads_that_do_not_fit_are_known_beforehand(heads, kv_heads, head_dim, dtype, fitting):
    assert fits(heads, kv_heads, head_dim, dtype.itemsize) == fitting
    if not fitting:
        case = Case(heads, kv_heads, head_dim, [5], dtype)
        with pytest.raises(ValueError, match="do not fit shared memory"):
            case.attend(None, torch.empty(1, heads * head_dim, device=DEVICE))
