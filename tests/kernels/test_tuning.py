"""The tuning that a pool is given is the one that it uses: rounded activations are seen in the results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kernels.cpu import CpuPool, ExpertJob, ExpertShape, Isa
from kernels.formats import WeightFormat
from kernels.pack import pack_expert
from kernels.tuning import FormatTuning, Tuning, Way
from tests.kernels.experts import aligned_bytes

COUNTS = (1, 2, 3, 4, 5, 9, 33)
TUNINGS = [
    FormatTuning(4),
    FormatTuning(0),
    FormatTuning(4, few_eight_bit=True),
    FormatTuning(9, few_eight_bit=True, exact_tokens=2),
    FormatTuning(2, many_eight_bit=True),
    FormatTuning(4, few_eight_bit=True, many_eight_bit=True, exact_tokens=1),
]


@pytest.mark.parametrize("tuning", TUNINGS, ids=str)
def test_activations_are_rounded_where_the_tuning_says(isa: Isa, tuning: FormatTuning) -> None:
    shape = ExpertShape(96, 64, WeightFormat.INT8)
    g = torch.Generator().manual_seed(1)
    sizes = ((64, 96), (64, 96), (96, 64))
    w1, w3, w2 = (torch.randn(*size, generator=g).bfloat16() for size in sizes)
    block = aligned_bytes(shape.nbytes)
    pack_expert(w1, w3, w2, block, WeightFormat.INT8)
    x = torch.randn(max(COUNTS), 96, generator=g)

    def run(pool: CpuPool, tokens: int, tuning: FormatTuning) -> Tensor:
        pool.tuning = pool.tuning.with_format(WeightFormat.INT8, tuning)
        out = torch.zeros(tokens, 96)
        job = ExpertJob(block, torch.arange(tokens, dtype=torch.int32), torch.ones(tokens))
        pool.run_experts(x[:tokens].contiguous(), [job], shape, out)
        return out

    with CpuPool(1, isa) as pool:
        for tokens in COUNTS:
            rounded = run(pool, tokens, FormatTuning(0, many_eight_bit=True))
            exact = run(pool, tokens, FormatTuning(tuning.few_tokens))
            if isa is Isa.PORTABLE:  # which cannot round: only few and many differ
                rounded = exact if tokens <= tuning.few_tokens else rounded
            else:
                assert not torch.equal(rounded, exact)
            expected = rounded if tuning.way(tokens) is Way.EIGHT_BIT else exact
            assert torch.equal(run(pool, tokens, tuning), expected), tokens
            assert pool.tuning.formats[WeightFormat.INT8] == tuning


def test_a_pool_keeps_what_it_is_given(isa: Isa) -> None:
    given = Tuning(dict(zip(WeightFormat, TUNINGS[-3:], strict=True)), panel_tokens=1 << 40)
    with CpuPool(1, isa) as pool, CpuPool(1, isa) as other:
        default = pool.tuning
        assert not any(each.eight_bit for each in default.formats.values())  # rounding is measured first
        pool.tuning = given
        assert pool.tuning == given
        assert other.tuning == default
        pool.tuning = default
        assert pool.tuning == default


@pytest.mark.parametrize("make", [lambda: FormatTuning(-1), lambda: FormatTuning(1, exact_tokens=-1)])
def test_negative_counts_are_refused(make: Callable[[], FormatTuning]) -> None:
    with pytest.raises(ValueError, match="tokens"):
        make()


def test_a_tuning_is_of_every_format() -> None:
    every = {each: FormatTuning(4) for each in WeightFormat}
    with pytest.raises(ValueError, match="every format"):
        Tuning({WeightFormat.BF16: FormatTuning(4)}, 12)
    with pytest.raises(ValueError, match="every format"):
        Tuning(every, -1)
    changed = Tuning(every, 12).with_format(WeightFormat.INT4, FormatTuning(1))
    assert changed.formats == {**every, WeightFormat.INT4: FormatTuning(1)}


def test_whether_anything_is_rounded() -> None:
    assert [each.eight_bit for each in TUNINGS] == [False, False, True, True, True, True]
    assert not FormatTuning(4, few_eight_bit=True, exact_tokens=4).eight_bit
