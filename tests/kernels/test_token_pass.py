"""One token through a layer against the definition in float64, and its experts against the general call."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa, PackedLinear
from kernels.formats import WeightFormat
from kernels.token_pass import TokenLayer, TokenPass, TokenShape, run_chosen
from kernels.tuning import FormatTuning, Tuning
from tests.kernels.experts import errors, exact, make_expert, make_rows

SHAPES = [
    TokenShape(hidden=64, heads=4, kv_heads=2, head_dim=16, experts=8, top_k=2, eps=1e-5),
    TokenShape(hidden=50, heads=3, kv_heads=3, head_dim=6, experts=3, top_k=3, eps=1e-6),
    TokenShape(hidden=33, heads=8, kv_heads=1, head_dim=20, experts=16, top_k=4, eps=1e-5),
    TokenShape(hidden=96, heads=9, kv_heads=3, head_dim=64, experts=2, top_k=1, eps=1e-5),
    TokenShape(hidden=32, heads=2, kv_heads=1, head_dim=2, experts=5, top_k=2, eps=1e-5),
]
# Around the ranges of 128 keys that threads take, with and without a window before which nothing is seen.
POSITIONS = [(0, 0), (1, 0), (126, 0), (127, 0), (128, 0), (300, 0), (300, 300), (300, 172), (299, 7)]
CAPACITY = 310


@dataclass
class Case:
    shape: TokenShape
    layer: TokenLayer
    cache: Tensor
    x: Tensor
    cos: Tensor
    sin: Tensor


def make(shape: TokenShape, position: int, first: int) -> Case:
    """Random weights and inputs; what the token must not see is NaN."""
    g = torch.Generator().manual_seed(position)
    rows = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    queries = shape.heads * shape.head_dim
    layer = TokenLayer(
        1 + 0.2 * torch.randn(shape.hidden, generator=g),
        PackedLinear.from_weight(
            (torch.randn(rows, shape.hidden, generator=g) / shape.hidden**0.5).bfloat16()
        ),
        PackedLinear.from_weight((torch.randn(shape.hidden, queries, generator=g) / queries**0.5).bfloat16()),
        1 + 0.2 * torch.randn(shape.hidden, generator=g),
        torch.randn(shape.experts, shape.hidden, generator=g),
    )
    cache = torch.full((2, shape.kv_heads, CAPACITY, shape.head_dim), float("nan"))
    cache[:, :, first:position] = torch.randn(
        2, shape.kv_heads, position - first, shape.head_dim, generator=g
    )
    angles = torch.rand(shape.head_dim // 2, generator=g) * 6
    return Case(
        shape,
        layer,
        cache,
        torch.randn(1, shape.hidden, generator=g),
        torch.cat((angles.cos(), angles.cos())),
        torch.cat((-angles.sin(), angles.sin())),
    )


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x / (x.square().mean() + eps).sqrt() * weight.double()


def expected(case: Case, position: int, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """The new residual, the experts' input and the new key and value, float64."""
    shape, layer = case.shape, case.layer
    x = case.x[0].double()
    projected = layer.qkv.unpack().double() @ norm(x, layer.input_norm, shape.eps)
    heads = projected.view(-1, shape.head_dim)
    rotated = shape.heads + shape.kv_heads
    swapped = heads[:rotated].roll(shape.head_dim // 2, dims=1)
    heads[:rotated] = heads[:rotated] * case.cos.double() + swapped * case.sin.double()
    new = heads[shape.heads :].view(2, shape.kv_heads, shape.head_dim)
    seen = torch.cat((case.cache[:, :, first:position].double(), new[:, :, None]), dim=2)
    group = shape.heads // shape.kv_heads
    mixed = torch.empty(shape.heads, shape.head_dim, dtype=torch.float64)
    for head in range(shape.heads):
        keys, values = seen[:, head // group]
        mixed[head] = torch.softmax(keys @ heads[head] / math.sqrt(shape.head_dim), 0) @ values
    x = x + layer.attention_out.unpack().double() @ mixed.flatten()
    return x, norm(x, layer.post_norm, shape.eps), new


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.heads}x{shape.head_dim}")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_layer_is_what_its_definition_says(isa: Isa, shape: TokenShape, threads: int) -> None:
    rounded = isa >= Isa.AVX512_BF16  # activations are, before a product with packed weights
    tolerance = 3e-2 if rounded else 2e-5
    with CpuPool(threads, isa) as pool:
        for position, first in POSITIONS:
            case = make(shape, position, first)
            token = TokenPass(pool, shape, [case.layer])
            token.x.copy_(case.x)
            x, normed, new = expected(case, position, first)
            token.run(0, case.cache, position, first, case.cos, case.sin)
            for ours, theirs in (
                (token.x[0], x),
                (token.normed[0], normed),
                (case.cache[:, :, position], new),
            ):
                torch.testing.assert_close(ours.double(), theirs, atol=tolerance, rtol=tolerance)
            assert case.cache[:, :, position + 1 :].isnan().all()
            # The router works on what this layer gave it, in float32 at every level.
            logits = token.normed[0].double() @ case.layer.router.double().T
            values, ids = logits.topk(shape.top_k)
            assert torch.equal(token.ids[0], ids)
            torch.testing.assert_close(
                token.weights[0].double(), torch.softmax(values, 0), atol=1e-5, rtol=1e-4
            )


def test_equal_logits_go_to_the_lower_expert() -> None:
    case = make(SHAPES[0], 3, 0)
    case.layer.router[:] = case.layer.router[0].clone()
    with CpuPool(1) as pool:
        token = TokenPass(pool, case.shape, [case.layer])
        token.x.copy_(case.x)
        token.run(0, case.cache, 3, 0, case.cos, case.sin)
    assert token.ids.tolist() == [[0, 1]]
    assert token.weights.tolist() == [[0.5, 0.5]]


def test_results_do_not_depend_on_the_threads(isa: Isa) -> None:
    results = []
    for threads in (1, 2, 5):
        case = make(SHAPES[3], 300, 0)
        with CpuPool(threads, isa) as pool:
            token = TokenPass(pool, case.shape, [case.layer])
            token.x.copy_(case.x)
            token.run(0, case.cache, 300, 0, case.cos, case.sin)
        results.append(token.x)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize("format", WeightFormat)
def test_chosen_experts_equal_the_general_call(isa: Isa, format: WeightFormat, eight_bit: bool) -> None:
    shape = ExpertShape(40, 300, format)  # ten panels: w2 has two entries for each row in int4's side table
    stride = -(-shape.nbytes // 4096) * 4096
    memory = torch.zeros(5 * stride + 4095, dtype=torch.uint8)
    start = -memory.data_ptr() % 4096
    blocks = memory[start : start + 5 * stride].view(5, stride)
    for number in range(5):
        blocks[number, : shape.nbytes] = make_expert(shape, number).block
    x, ids = make_rows(1, 40), torch.tensor([[4, 0, 3]])
    weights = torch.tensor([[0.5, 0.3, 0.2]])
    ours, general = torch.ones(1, 40), torch.ones(1, 40)
    with CpuPool(2, isa) as pool:
        pool.tuning = Tuning(dict.fromkeys(WeightFormat, FormatTuning(4, few_eight_bit=eight_bit)), 12)
        run_chosen(pool, blocks, shape, x, ids, weights, ours)
        row = torch.zeros(1, dtype=torch.int32)
        jobs = [
            ExpertJob(blocks[e, : shape.nbytes], row, weights[0, k : k + 1]) for k, e in enumerate([4, 0, 3])
        ]
        pool.run_experts(x, jobs, shape, general)
        for wrong in (5, -1):
            with pytest.raises(IndexError, match=str(wrong)):
                run_chosen(pool, blocks, shape, x, torch.tensor([[wrong, 0, 1]]), weights, ours)
        with pytest.raises(ValueError, match="weights"):
            run_chosen(pool, blocks, shape, x, ids, weights[:, :2], ours)
        with pytest.raises(ValueError, match="a packed expert is"):
            run_chosen(pool, blocks[:, : shape.nbytes - 64], shape, x, ids, weights, ours)
    assert torch.equal(ours, general)
    reference = torch.ones(1, 40, dtype=torch.float64)
    for weight, expert in zip(weights[0].tolist(), [4, 0, 3], strict=True):
        reference += weight * exact(make_expert(shape, expert), x)
    assert float(errors(ours, reference).max()) <= (0.03 if eight_bit else 0.01)


@pytest.mark.parametrize("change", [{"heads": 5}, {"head_dim": 7}, {"top_k": 9}, {"hidden": 0}])
def test_impossible_sizes_are_refused(change: dict[str, int]) -> None:
    sizes = {"hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "experts": 8, "top_k": 2, "eps": 1e-5}
    with pytest.raises(ValueError, match="cannot have these sizes"):
        TokenShape(**(sizes | change))


@pytest.mark.parametrize(("position", "first"), [(CAPACITY, 0), (3, 4), (-1, 0), (3, -1)])
def test_positions_outside_the_cache_are_refused(position: int, first: int) -> None:
    case = make(SHAPES[0], 3, 0)
    with CpuPool(1) as pool:
        token = TokenPass(pool, case.shape, [case.layer])
        with pytest.raises(ValueError, match="cannot hold position"):
            token.run(0, case.cache, position, first, case.cos, case.sin)
        with pytest.raises(ValueError, match="cannot hold position"):
            token.run(0, case.cache.double(), 3, 0, case.cos, case.sin)
        with pytest.raises(ValueError, match="angles"):
            token.run(0, case.cache, 3, 0, case.cos[:-1], case.sin)
    with pytest.raises(ValueError, match="router"):
        TokenPass(pool, case.shape, [TokenLayer(**(vars(case.layer) | {"router": case.layer.router[:-1]}))])
