"""Random experts of every format, the ways to multiply them, and what each way should give in float64.

The reference shares nothing with the kernels: plain matrices, dequantised by definition, and torch. It can
round weights and activations where a way rounds them: what is left is the error of float32 sums alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import torch
from torch import Tensor
from torch.nn.functional import pad, silu

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa, pack_expert
from kernels.formats import WeightFormat
from kernels.pack import pack_quantised
from kernels.quantised import Int4Matrix, Int8Matrix, QuantisedMatrix
from kernels.tuning import FormatTuning, Tuning, Way
from kernels.unpack import _grids, _int4_tensors, _int8_tensors

ALWAYS = 1 << 20  # more tokens than any test has
BY_PANELS, BY_ROWS = ALWAYS, 0  # Tuning.panel_tokens: how a call is divided
AS_THEY_STAND = 4  # tokens: quantised weights are expanded or rounded for more, whatever a tuning says


@dataclass(frozen=True)
class Expert:
    """A packed expert and its weights w1, w3, w2 in float64."""

    shape: ExpertShape
    block: Tensor
    weights: tuple[Tensor, Tensor, Tensor]

    def job(self, count: int, panels: tuple[int, int] | None = None) -> ExpertJob:
        """The first `count` rows of x, each with a routing weight of 1."""
        return ExpertJob(self.block, torch.arange(count, dtype=torch.int32), torch.ones(count), panels)


def empty_block(shape: ExpertShape) -> Tensor:
    """An expert's memory, aligned, in which whatever is not written shows."""
    buffer = torch.full((shape.nbytes + 63,), 0xA5, dtype=torch.uint8)
    start = -buffer.data_ptr() % 64
    return buffer[start : start + shape.nbytes]


def ways(format: WeightFormat) -> list[Way]:
    """Those that differ for a format: 8-bit activations do nothing to bf16."""
    return [way for way in Way if way is not Way.EIGHT_BIT or format is not WeightFormat.BF16]


def tuning(way: Way, panel_tokens: int) -> Tuning:
    """Every format that way, for any number of tokens as far as the level can."""
    choice = FormatTuning(few_tokens=0 if way is Way.EXPANDED else ALWAYS, few_eight_bit=way is Way.EIGHT_BIT)
    return Tuning(dict.fromkeys(WeightFormat, choice), panel_tokens)


class Activations(Enum):
    FLOAT = "float32"
    BF16 = "bf16"
    EIGHT_BIT = "8 bits"


@dataclass(frozen=True)
class Precision:
    """What a way rounds."""

    activations: Activations
    expands: bool  # quantised weights are rounded to bf16

    @property
    def bound(self) -> float:
        """The error that the precision may cost a token: of its output's norm."""
        if self.activations is Activations.FLOAT and not self.expands:
            return 1e-5
        return 0.03 if self.activations is Activations.EIGHT_BIT else 0.01


def precision(isa: Isa, format: WeightFormat, way: Way, tokens: int) -> Precision:
    quantised = format is not WeightFormat.BF16
    if quantised and way is Way.EIGHT_BIT and isa is not Isa.PORTABLE:
        return Precision(Activations.EIGHT_BIT, expands=False)
    if quantised and way is not Way.EXPANDED and tokens <= AS_THEY_STAND:
        return Precision(Activations.FLOAT, expands=False)
    rounds = isa >= Isa.AVX512_BF16
    return Precision(Activations.BF16 if rounds else Activations.FLOAT, expands=quantised)


def matrix_sizes(shape: ExpertShape) -> tuple[tuple[int, int], ...]:
    """Of w1, w3 and w2."""
    h, i = shape.hidden, shape.intermediate
    return (i, h), (i, h), (h, i)


def random_matrix(format: WeightFormat, rows: int, cols: int, g: torch.Generator) -> QuantisedMatrix:
    """Every value, scales and minimums of either sign, and products that stay near 1."""

    def factors(count: int, size: float) -> Tensor:
        sign = torch.randint(0, 2, (rows, count), generator=g) * 2 - 1
        return (sign * (0.5 + torch.rand(rows, count, generator=g)) * size).half()

    def whole(end: int, count: int) -> Tensor:
        return torch.randint(0, end, (rows, count), generator=g, dtype=torch.uint8)

    groups, blocks = -(-cols // 32), -(-cols // 256)
    if format is WeightFormat.INT8:
        values = torch.randint(-128, 128, (rows, cols), generator=g, dtype=torch.int8)
        return Int8Matrix(values, factors(groups, 1 / (74 * cols**0.5)))
    size = 1 / (127 * 11 * cols**0.5)
    scales, minimums = whole(256, groups), whole(256, groups)
    return Int4Matrix(whole(16, cols), scales, minimums, factors(blocks, size), factors(blocks, 7 * size))


def aligned_bytes(count: int) -> Tensor:
    buffer = torch.empty(count + 63, dtype=torch.uint8)
    start = -buffer.data_ptr() % 64
    return buffer[start : start + count]


def packed(*matrices: QuantisedMatrix) -> Expert:
    """The expert of three quantised matrices w1, w3, w2."""
    w1, w3, w2 = matrices
    shape = ExpertShape(w1.cols, w1.rows, w1.format)
    block = aligned_bytes(shape.nbytes)
    pack_quantised(w1, w3, w2, block)
    return Expert(
        shape, block, (w1.dequantise().double(), w3.dequantise().double(), w2.dequantise().double())
    )


def packed_bf16(w1: Tensor, w3: Tensor, w2: Tensor) -> Expert:
    shape = ExpertShape(w1.shape[1], w1.shape[0])
    block = aligned_bytes(shape.nbytes)
    pack_expert(w1, w3, w2, block)
    return Expert(shape, block, (w1.double(), w3.double(), w2.double()))


def make_expert(shape: ExpertShape, seed: int = 0) -> Expert:
    g = torch.Generator().manual_seed(seed)
    if shape.format is WeightFormat.BF16:
        return packed_bf16(
            *((torch.randn(*size, generator=g) / size[1] ** 0.5).bfloat16() for size in matrix_sizes(shape))
        )
    return packed(*(random_matrix(shape.format, *size, g) for size in matrix_sizes(shape)))


def make_rows(tokens: int, hidden: int, seed: int = 0) -> Tensor:
    """float32 [tokens, hidden], normal."""
    return torch.randn(tokens, hidden, generator=torch.Generator().manual_seed(seed))


def exact(expert: Expert, x: Tensor, rounding: Precision | None = None) -> Tensor:
    """The expert's outputs in float64 [tokens, hidden], of activations and weights rounded as given."""
    w1, w3, w2 = expert.weights
    if rounding is None:
        x = x.double()
        return (silu(x @ w1.T) * (x @ w3.T)) @ w2.T
    if rounding.expands:
        w1, w3, w2 = (bf16_away(w.float()) for w in (w1, w3, w2))
    x = rounded(x, rounding.activations)
    return rounded((silu(x @ w1.T) * (x @ w3.T)).float(), rounding.activations) @ w2.T


def rounded(x: Tensor, to: Activations) -> Tensor:
    """float32 activations as a way takes them, in float64."""
    if to is Activations.BF16:
        return x.bfloat16().double()
    return eight_bit(x) if to is Activations.EIGHT_BIT else x.double()


def eight_bit(x: Tensor) -> Tensor:
    """Each 32 inputs as whole numbers times a 127th of the largest magnitude; ties go to even numbers."""
    groups = pad(x, (0, -x.shape[1] % 32)).view(x.shape[0], -1, 32)
    largest = groups.abs().amax(-1, keepdim=True)
    whole = (groups * (127.0 / largest.clamp_min(1e-36))).round()
    return (whole.double() * (largest / 127.0).double()).flatten(1)[:, : x.shape[1]]


def bf16_away(weights: Tensor) -> Tensor:
    """float32 to the nearest bf16, ties away from zero, in float64."""
    bits = weights.contiguous().view(torch.int32).long() & 0xFFFFFFFF
    bits = (bits + 0x8000) & 0xFFFF0000
    return torch.where(bits >= 1 << 31, bits - (1 << 32), bits).int().view(torch.float32).double()


def run(pool: CpuPool, expert: Expert, x: Tensor, panels: tuple[int, int] | None = None) -> Tensor:
    """The outputs of an expert for every row of x."""
    out = torch.zeros(x.shape[0], expert.shape.hidden)
    pool.run_experts(x, [expert.job(x.shape[0], panels)], expert.shape, out)
    return out


def errors(y: Tensor, reference: Tensor) -> Tensor:
    """Of each token, relative to the reference's norm."""
    return (y.double() - reference).norm(dim=-1) / reference.norm(dim=-1).clamp_min(1e-300)


def unpack_quantised(
    block: Tensor, shape: ExpertShape
) -> tuple[QuantisedMatrix, QuantisedMatrix, QuantisedMatrix]:
    """(w1, w3, w2) of a packed expert of 8 or 4 bits as they were packed, on the block's device."""
    if shape.format is WeightFormat.INT8:
        w1, w3, w2 = (Int8Matrix(*_int8_tensors(grid)) for grid in _grids(block, shape))
        return w1, w3, w2
    assert shape.format is WeightFormat.INT4
    v1, v3, v2 = (Int4Matrix(*_int4_tensors(grid)) for grid in _grids(block, shape))
    return v1, v3, v2


def normal_expert(shape: ExpertShape, seed: int = 0) -> Expert:
    """Normal weights, quantised; the float64 weights are what the quantised ones stand for."""
    expert = make_expert(ExpertShape(shape.hidden, shape.intermediate), seed)
    if shape.format is WeightFormat.BF16:
        return expert
    block = aligned_bytes(shape.nbytes)
    w1, w3, w2 = (w.bfloat16() for w in expert.weights)
    pack_expert(w1, w3, w2, block, shape.format)
    w1, w3, w2 = (matrix.dequantise().double() for matrix in unpack_quantised(block, shape))
    return Expert(shape, block, (w1, w3, w2))
