"""Packed experts on a GPU against float64: every format, size, and division."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from kernels.formats import WeightFormat
from kernels.gpu import experts
from kernels.gpu.experts import SPLITS, ExpertScratch, run_residents, run_streamed
from kernels.shape import ExpertShape
from tests.kernels.experts import Expert, exact, make_expert, make_rows

UNTOUCHED = 12345.0
GPU = torch.device("cuda")
on_a_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU"),
]


@dataclass
class Case:
    """Some tokens, their experts, and the GPU's memory."""

    experts: list[Expert]
    x: Tensor
    ids: Tensor
    weights: Tensor
    data: Tensor
    scratch: ExpertScratch

    @property
    def shape(self) -> ExpertShape:
        return self.experts[0].shape

    def inputs(self) -> tuple[Tensor, ExpertShape, Tensor, Tensor, Tensor]:
        """The first arguments of both functions."""
        to = self.data.device
        return self.data, self.shape, self.x.to(to), self.ids.to(to), self.weights.to(to)

    def residents(self, table: list[int]) -> None:
        places = torch.tensor(table, dtype=torch.int32, device=self.data.device)
        run_residents(*self.inputs(), places, self.scratch)

    def streamed(self, table: list[int], firsts: list[int]) -> None:
        places, panels = (
            torch.tensor(each, dtype=torch.int32, device=self.data.device) for each in (table, firsts)
        )
        run_streamed(*self.inputs(), places, panels, self.scratch)

    def check(self, places: dict[int, int], firsts: dict[int, int] | None = None) -> None:
        """The pairs of the experts in `places` have their results in float64; no other was touched."""
        top_k = self.ids.shape[1]
        for pair, expert in enumerate(self.ids.flatten().tolist()):
            row = self.scratch.partial[pair].cpu()
            if expert not in places:
                assert bool((row == UNTOUCHED).all()), pair
                continue
            of = self.experts[places[expert]]
            w1, w3, w2 = of.weights
            neurons = slice(32 * (firsts or {}).get(expert, 0), None)
            part = Expert(of.shape, of.block, (w1[neurons], w3[neurons], w2[:, neurons]))
            wanted = exact(part, self.x[pair // top_k][None])[0] * self.weights.flatten()[pair].double()
            error = float((row.double().sum(0) - wanted).norm())
            assert error <= 1e-5 * float(wanted.norm()) + 1e-30, pair


def make_case(
    device: torch.device,
    format: WeightFormat,
    size: tuple[int, int],
    tokens: int,
    dtype: torch.dtype = torch.float32,
    top_k: int = 2,
    experts: int = 5,
) -> Case:
    """Two blocks, in the places 0 and 1, and a random choice among `experts`."""
    blocks = [make_expert(ExpertShape(*size, format), seed) for seed in range(2)]
    shape = blocks[0].shape
    g = torch.Generator().manual_seed(tokens)
    data = torch.randint(0, 256, (2, -(-shape.nbytes // 512) * 512), generator=g, dtype=torch.uint8)
    for place, expert in enumerate(blocks):
        data[place, : shape.nbytes] = expert.block
    scratch = ExpertScratch.make(shape, tokens * top_k, device)
    scratch.partial.fill_(UNTOUCHED)
    scratch.inner.fill_(float("nan"))
    return Case(
        blocks,
        make_rows(tokens, size[0]).to(dtype),
        torch.stack([torch.randperm(experts, generator=g)[:top_k] for _ in range(tokens)]).int(),
        torch.rand(tokens, top_k, generator=g) + 0.1,
        data.to(device),
        scratch,
    )


# The fewest and the most that a program serves at once; both number formats; one token, and pairs that exist.
TOKENS = [(1, torch.bfloat16), (3, torch.float32), (5, torch.bfloat16)]
SIZES = [(40, 70), (75, 33)]  # more tiles than one either way; inputs in pairs, and an odd number of them
# Each size with each format and with each number of tokens, and these with each other: the interpreter takes
# seconds for one.
RESIDENTS = [
    (format, SIZES[(row + column) % 2], *each)
    for row, format in enumerate(WeightFormat)
    for column, each in enumerate(TOKENS)
]


@pytest.mark.parametrize(("format", "size", "tokens", "dtype"), RESIDENTS)
def test_residents(
    device: torch.device, format: WeightFormat, size: tuple[int, int], tokens: int, dtype: torch.dtype
) -> None:
    case = make_case(device, format, size, tokens, dtype)
    assert case.scratch.partial.shape == (2 * tokens, SPLITS, size[0])
    case.residents([1, -1, 0, -1, 1])
    case.check({0: 1, 2: 0, 4: 1})


@pytest.mark.parametrize("format", WeightFormat)
@pytest.mark.parametrize("size", [(1, 1), (1030, 20)])
def test_small_and_long_ones(device: torch.device, format: WeightFormat, size: tuple[int, int]) -> None:
    """Less than a tile; and more of a row than a program takes at once."""
    case = make_case(device, format, size, 1, top_k=1, experts=1)
    case.residents([1])
    case.check({0: 1})


@pytest.mark.parametrize("format", WeightFormat)
def test_more_panels_than_a_program_takes_at_once(device: torch.device, format: WeightFormat) -> None:
    """The last two splits of 65 panels, of 9 and of 2; the others are left out: the interpreter is slow."""
    case = make_case(device, format, (33, 65 * 32), 1, top_k=1, experts=1)
    assert case.shape.panels > SPLITS * max(sizes.at_once for sizes in experts.SIZES.values())
    case.streamed([1], [54])
    case.check({0: 1}, {0: 54})


@pytest.mark.parametrize(("tokens", "top_k"), [(5, 1), (4, 3), (2, 4)])
def test_every_number_of_experts_a_token(device: torch.device, tokens: int, top_k: int) -> None:
    case = make_case(device, WeightFormat.BF16, (33, 40), tokens, top_k=top_k)
    case.residents([0, 1, -1, 0, 1])
    case.check({0: 0, 1: 1, 3: 0, 4: 1})


def test_all_tokens_at_one_expert_and_some_at_none(device: torch.device) -> None:
    """More pairs than a program serves, the last program not full; -1 and unknown numbers are no expert."""
    case = make_case(device, WeightFormat.BF16, (40, 33), 16, top_k=2, experts=2)
    case.ids[:] = 1
    case.ids[3:5] = torch.tensor([[-1, 1], [7, -5]])
    case.ids[9, 1] = 64
    case.residents([-1, 0])
    case.check({1: 0})


@pytest.mark.parametrize("firsts", [(7, 8), (5, 10)])
@pytest.mark.parametrize("format", WeightFormat)
def test_last_panels(device: torch.device, format: WeightFormat, firsts: tuple[int, int]) -> None:
    """That begin within a split and within eight panels; none of 10 give zeros, a negative place nothing."""
    case = make_case(device, format, (40, 300), 2, experts=4)
    case.streamed([-1, 0, 1, -2], [99, firsts[0], firsts[1], 99])
    case.check({1: 0, 2: 1}, {1: firsts[0], 2: firsts[1]})


def test_streamed_and_resident_results_are_the_same_bits(device: torch.device) -> None:
    """Where an expert lies, and which others are run with it, changes nothing."""
    case = make_case(device, WeightFormat.INT4, (20, 40), 2, experts=3)
    case.residents([0, 1, 0])
    first = case.scratch.partial.clone()
    for places in ([0, -1, -1], [-1, 1, -1], [-1, -1, 0]):
        case.streamed(places, [0] * 3)
    assert torch.equal(first, case.scratch.partial)


def test_offsets_of_64_bits_give_the_same_bits(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """As experts of more than 2 GiB have them: any is taken for one here."""
    case = make_case(device, WeightFormat.INT4, (33, 40), 1, experts=2)
    places, firsts = [0, 1], [1, 0]
    case.streamed(places, firsts)
    usual = case.scratch.partial.clone()
    case.scratch.partial.fill_(UNTOUCHED)
    monkeypatch.setattr(experts, "_NARROW", 0)
    case.streamed(places, firsts)
    assert torch.equal(case.scratch.partial, usual)
    case.check({0: 0, 1: 1}, {0: 1})


@pytest.mark.parametrize(
    "wrong",
    ["data", "stride", "x", "hidden", "ids", "weights", "pairs", "splits", "table", "firsts", "experts"],
)
def test_refuses_what_does_not_belong_together(wrong: str) -> None:
    case = make_case(torch.device("cpu"), WeightFormat.BF16, (40, 70), 2)
    table = firsts = torch.zeros(5, dtype=torch.int32)
    if wrong == "data":
        case.data = case.data.view(torch.int8)
    elif wrong == "stride":
        case.data = case.data[:, :-256].contiguous()
    elif wrong == "x":
        case.x = case.x.half()
    elif wrong == "hidden":
        case.x = case.x[:, 1:].contiguous()
    elif wrong == "ids":
        case.ids = case.ids.long()
    elif wrong == "weights":
        case.weights = case.weights[:1]
    elif wrong == "pairs":
        case.scratch = ExpertScratch.make(case.shape, 3, case.data.device)
    elif wrong == "splits":
        case.scratch = ExpertScratch(case.scratch.inner, case.scratch.partial[:, 1:])
    elif wrong == "table":
        table = table.long()
    elif wrong == "firsts":
        firsts = firsts[None]
    else:
        firsts = firsts[1:].clone()
    with pytest.raises(ValueError, match=r"contiguous|room for|another shape|do not belong"):
        run_streamed(*case.inputs(), table, firsts, case.scratch)


@pytest.mark.parametrize(("tokens", "dtype"), [*TOKENS, (16, torch.bfloat16)])
@pytest.mark.parametrize("size", [(300, 597), (1024, 3584), (2000, 1111)])
@pytest.mark.parametrize("format", WeightFormat)
class TestLargerOnAGpu:
    pytestmark = on_a_gpu

    def test_residents(
        self, format: WeightFormat, size: tuple[int, int], tokens: int, dtype: torch.dtype
    ) -> None:
        case = make_case(GPU, format, size, tokens, dtype)
        case.residents([1, -1, 0, -1, 1])
        case.check({0: 1, 2: 0, 4: 1})

    def test_captured_and_repeated(
        self, format: WeightFormat, size: tuple[int, int], tokens: int, dtype: torch.dtype
    ) -> None:
        """A CUDA graph of both functions gives the same bits each time, and follows changed inputs."""
        case = make_case(GPU, format, size, tokens, dtype)
        data, shape, x, ids, weights = case.inputs()
        table = torch.tensor([1, -1, 0, -1, 1], dtype=torch.int32, device=GPU)

        copied = torch.tensor([-1, -2, -1, 0, -1], dtype=torch.int32, device=GPU)
        firsts = torch.ones_like(copied)

        def both() -> None:
            run_residents(data, shape, x, ids, weights, table, case.scratch)
            run_streamed(data, shape, x, ids, weights, copied, firsts, case.scratch)

        both()
        torch.cuda.synchronize()
        first = case.scratch.partial.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            both()
        for _ in range(3):
            case.scratch.partial.fill_(UNTOUCHED)
            graph.replay()
            assert torch.equal(case.scratch.partial, first)
        ids.copy_(ids.flip(0))
        x.copy_(x.flip(0))
        case.ids, case.x = ids.cpu(), x.cpu()
        case.scratch.partial.fill_(UNTOUCHED)
        graph.replay()
        expected = case.scratch.partial.clone()
        case.scratch.partial.fill_(UNTOUCHED)
        both()
        assert torch.equal(case.scratch.partial, expected)


class TestFarAwayOnAGpu:
    pytestmark = on_a_gpu

    def test_places_beyond_four_gigabytes(self) -> None:
        case = make_case(GPU, WeightFormat.INT8, (1024, 3584), 3, experts=2)
        stride = case.data.shape[1]
        places = (5 << 30) // stride + 1
        data = torch.zeros(places, stride, dtype=torch.uint8, device=GPU)
        data[places - 1] = case.data[1]
        case.data = data
        case.residents([-1, places - 1])
        case.check({1: 1})
