"""AWQ and GPTQ against weights computed from the numbers that were packed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.transcode.accuracy import LARGEST_ERROR, Transcoded
from engine.transcode.errors import RefusedError
from engine.transcode.packed_int32 import PackedMatrix, transcode_awq, transcode_gptq4, transcode_gptq8
from kernels.errors import NonFiniteWeightError, WeightRangeError
from kernels.formats import WeightFormat
from tests.engine.transcode.files import (
    awq_tensors,
    block_errors,
    gptq_tensors,
    meant,
    random_numbers,
)

SETTINGS = settings(deadline=None, max_examples=60)
# Inputs and group sizes; 96 does not divide a block of 256, 160 ends within one.
sizes = st.sampled_from(
    [(32, 32), (64, 32), (256, 128), (384, 128), (512, 64), (512, 512), (192, 96), (160, 160)]
)


def packed(tensors: dict[str, np.ndarray], group: int) -> PackedMatrix:
    return PackedMatrix(tensors["qweight"], tensors["qzeros"], tensors["scales"].astype(np.float32), group)


def check(result: Transcoded, values: np.ndarray, wanted: np.ndarray) -> None:
    """int4, every value kept, within the bound, and as exact as reported."""
    assert result.matrix.format is WeightFormat.INT4
    np.testing.assert_array_equal(result.matrix.values.numpy(), values.T)
    errors = block_errors(wanted, result.matrix.dequantise().numpy())
    assert errors.max() <= LARGEST_ERROR
    assert result.accuracy.blocks == errors.size
    assert result.accuracy.largest == pytest.approx(errors.max(), abs=3e-7)
    assert result.accuracy.mean == pytest.approx(errors.mean(), abs=3e-7)


@SETTINGS
@given(sizes, st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_awq(size: tuple[int, int], eights: int, seed: int) -> None:
    numbers = random_numbers(seed, size[0], 8 * eights, size[1])
    check(transcode_awq(packed(awq_tensors(*numbers), size[1])), numbers[0], meant(*numbers))


@SETTINGS
@given(
    sizes, st.integers(1, 5), st.sampled_from([1, 2]), st.sampled_from([None, 8]), st.integers(0, 2**32 - 1)
)
def test_gptq_of_4_bits(
    size: tuple[int, int], eights: int, version: int, zero: int | None, seed: int
) -> None:
    numbers = random_numbers(seed, size[0], 8 * eights, size[1], zero=zero)
    tensors = gptq_tensors(*numbers, version=version)
    result = transcode_gptq4(packed(tensors, size[1]), stored_minus_one=version == 1)
    check(result, numbers[0], meant(*numbers))


@SETTINGS
@given(sizes, st.integers(1, 5), st.sampled_from([1, 2]), st.integers(0, 2**32 - 1))
def test_gptq_of_8_bits_is_exact(size: tuple[int, int], fours: int, version: int, seed: int) -> None:
    numbers = random_numbers(seed, size[0], 4 * fours, size[1], bits=8, zero=128)
    tensors = gptq_tensors(*numbers, bits=8, version=version)
    result = transcode_gptq8(packed(tensors, size[1]), stored_minus_one=version == 1)
    assert result.matrix.format is WeightFormat.INT8
    np.testing.assert_array_equal(result.matrix.dequantise().numpy(), meant(*numbers))
    assert result.accuracy.exact
    assert result.accuracy.blocks == block_errors(meant(*numbers), meant(*numbers)).size


def test_one_scale_for_a_block_is_exact() -> None:
    """Groups of 256 and more, or equal neighbours: nothing has to be rounded."""
    for group in (256, 512, 128):
        values, zeros, scales = random_numbers(1, 512, 64, group)
        scales[:], zeros[:] = scales[:1], zeros[:1]
        result = transcode_awq(packed(awq_tensors(values, zeros, scales), group))
        assert result.accuracy.exact, group
        np.testing.assert_array_equal(result.matrix.dequantise().numpy(), meant(values, zeros, scales))


def test_a_dead_group_with_a_scale_costs_the_others_nothing() -> None:
    values, zeros, scales = random_numbers(2, 256, 8, 128)
    values[:128], scales[0] = zeros[0], 50
    result = transcode_awq(packed(awq_tensors(values, zeros, scales), 128))
    assert result.accuracy.acceptable
    weights = result.matrix.dequantise().numpy()
    assert not weights[:, :128].any()
    assert block_errors(meant(values, zeros, scales), weights).max() <= LARGEST_ERROR


@pytest.mark.parametrize("zero", [127, 129])
def test_8_bits_about_another_zero_point_are_refused_if_a_value_needs_nine(zero: int) -> None:
    numbers = random_numbers(3, 64, 8, 32, bits=8, zero=zero)
    with pytest.raises(RefusedError, match=r"zero point than 128.*symmetrically"):
        transcode_gptq8(packed(gptq_tensors(*numbers, bits=8), 32), stored_minus_one=True)
    numbers[0][:] = np.clip(numbers[0], zero - 128, zero + 127)
    result = transcode_gptq8(packed(gptq_tensors(*numbers, bits=8), 32), stored_minus_one=True)
    np.testing.assert_array_equal(result.matrix.dequantise().numpy(), meant(*numbers))


def test_8_bits_with_scales_beyond_float16_are_refused() -> None:
    values, zeros, scales = random_numbers(4, 64, 8, 32, bits=8, zero=128)
    matrix = packed(gptq_tensors(values, zeros, scales, bits=8), 32)
    matrix.scales[1, 3] = 1 + 2.0**-11
    with pytest.raises(RefusedError, match="not float16 numbers"):
        transcode_gptq8(matrix, stored_minus_one=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_scale_that_is_no_number_is_an_error_with_its_place(bad: float) -> None:
    values, zeros, scales = random_numbers(5, 256, 16, 64)
    scales[2, 7] = bad
    awq = packed(awq_tensors(values, zeros, scales), 64)
    gptq = packed(gptq_tensors(values, zeros, scales), 64)
    eight = random_numbers(5, 256, 16, 64, bits=8, zero=128)
    eight[2][2, 7] = bad
    gptq8 = packed(gptq_tensors(*eight, bits=8), 64)
    for transcode in (
        lambda: transcode_awq(awq),
        lambda: transcode_gptq4(gptq, stored_minus_one=True),
        lambda: transcode_gptq8(gptq8, stored_minus_one=True),
    ):
        with pytest.raises(NonFiniteWeightError) as caught:
            transcode()
        assert (caught.value.row, caught.value.col) == (7, 128)


def test_scales_too_large_for_float16_factors_are_an_error() -> None:
    values, zeros, scales = random_numbers(6, 64, 8, 32)
    matrix = packed(awq_tensors(values, zeros, scales), 32)
    matrix.scales[1, 2] = 1e7  # a bfloat16 file can hold such a number
    with pytest.raises(WeightRangeError, match="row 2, column 32"):
        transcode_awq(matrix)
