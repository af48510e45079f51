"""Blocks of every type that is taken over, against the `gguf` library's weights."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.checkpoint.gguf_quants import GgmlType
from engine.transcode.accuracy import LARGEST_ERROR, Transcoded
from engine.transcode.gguf_blocks import FORMATS, transcode_blocks
from kernels.errors import NonFiniteWeightError
from kernels.formats import WeightFormat
from kernels.quantised import Int4Matrix, Int8Matrix
from tests.engine.transcode.files import block_errors, block_maxima

EXACT = (GgmlType.Q8_0, GgmlType.Q4_K)
ROUNDED = (GgmlType.Q4_0, GgmlType.Q4_1)
SETTINGS = settings(deadline=None, max_examples=60)


def library(kind: GgmlType, blocks: np.ndarray) -> np.ndarray:
    """The weights [rows, cols] by the library."""
    return gguf.dequantize(blocks.reshape(len(blocks), -1), gguf.GGMLQuantizationType(kind))


def quantised(kind: GgmlType, weights: np.ndarray) -> np.ndarray:
    """Blocks [rows, blocks, bytes] by the library."""
    nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)][1]
    return gguf.quantize(weights, gguf.GGMLQuantizationType(kind)).reshape(len(weights), -1, nbytes)


def check_errors(result: Transcoded, wanted: np.ndarray) -> None:
    """What is reported is what is measured, up to float32's rounding."""
    errors = block_errors(wanted, result.matrix.dequantise().numpy())
    assert result.accuracy.blocks == errors.size
    assert result.accuracy.largest == pytest.approx(errors.max(), abs=3e-7)
    assert result.accuracy.mean == pytest.approx(errors.mean(), abs=3e-7)


def nibbles(packed: np.ndarray) -> np.ndarray:
    """[rows, blocks, 16] bytes to [rows, blocks, 32] values."""
    return np.concatenate((packed & 15, packed >> 4), axis=-1)


@SETTINGS
@given(st.sampled_from(EXACT), st.integers(1, 3), st.integers(1, 9), st.data())
def test_q8_0_and_q4_k_are_exact(kind: GgmlType, rows: int, blocks: int, data: st.DataObject) -> None:
    """To the bit, for any bytes whose scales are finite numbers."""
    nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)][1]
    noise = data.draw(arrays(np.uint8, (rows, blocks, nbytes)))
    for at in (1, 3) if kind is GgmlType.Q4_K else (1,):
        noise[..., at] &= 0xBB  # an exponent below the one of infinity
    result = transcode_blocks(kind, noise)
    wanted = library(kind, noise)
    got = result.matrix.dequantise().numpy()
    if kind is GgmlType.Q8_0:
        assert isinstance(result.matrix, Int8Matrix)
        np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))
    else:
        assert isinstance(result.matrix, Int4Matrix)
        np.testing.assert_array_equal(got.view(np.uint32), wanted.view(np.uint32))
    assert result.accuracy.exact
    assert result.accuracy.largest == 0
    assert result.accuracy.blocks == block_errors(wanted, got).size


@SETTINGS
@given(
    st.sampled_from(ROUNDED),
    st.integers(1, 4),
    st.integers(1, 20),
    st.sampled_from([1e-6, 1e-4, 0.02, 1.0, 300.0]),
    st.floats(0, 3),
    st.integers(0, 2**32 - 1),
)
def test_of_q4_0_and_q4_1_every_value_is_kept_and_scales_stay_within_the_bound(
    kind: GgmlType, rows: int, blocks: int, size: float, spread: float, seed: int
) -> None:
    """Weights of all sizes, groups of very different size in one block, rows that end within a block.

    Where a whole block is tiny, float16's smallest steps are coarser than 8-bit codes would be.
    """
    random = np.random.default_rng(seed)
    weights = random.standard_normal((rows, blocks, 32)) * size
    weights *= np.exp(random.standard_normal((rows, blocks, 1)) * spread)
    weights = np.clip(weights, -3e4, 3e4).reshape(rows, -1).astype(np.float32)
    stored = quantised(kind, weights)
    result = transcode_blocks(kind, stored)
    matrix = result.matrix
    assert isinstance(matrix, Int4Matrix)
    wanted = library(kind, stored)
    check_errors(result, wanted)
    errors = block_errors(wanted, matrix.dequantise().numpy())
    assert np.all(errors <= np.where(block_maxima(wanted) >= 2**-7, LARGEST_ERROR, 1.6 * LARGEST_ERROR))
    original = nibbles(stored[..., 2:] if kind is GgmlType.Q4_0 else stored[..., 4:])
    kept = matrix.values.numpy().reshape(original.shape)
    same = (kept == original).all(axis=-1)
    assert np.all(same | (kept == 15 - original).all(axis=-1))


def test_only_groups_with_a_negative_scale_are_complemented() -> None:
    random = np.random.default_rng(3)
    stored = quantised(GgmlType.Q4_0, random.standard_normal((8, 256)).astype(np.float32))
    negative = stored[..., 1] >= 128
    assert 0 < negative.mean() < 1
    original = nibbles(stored[..., 2:])
    kept = transcode_blocks(GgmlType.Q4_0, stored).matrix.values.numpy().reshape(original.shape)
    np.testing.assert_array_equal(kept, np.where(negative[..., None], 15 - original, original))


def test_random_weights_lose_far_less_than_the_bound_on_average() -> None:
    weights = np.random.default_rng(5).standard_normal((64, 2048)).astype(np.float32) / 50
    for kind in ROUNDED:
        stored = quantised(kind, weights)
        result = transcode_blocks(kind, stored)
        assert result.accuracy.mean < LARGEST_ERROR / 2
        difference = result.matrix.dequantise().numpy() - library(kind, stored)
        assert np.linalg.norm(difference) < 0.003 * np.linalg.norm(weights)


@pytest.mark.parametrize("sign", [1, -1])
def test_minimums_of_one_sign_are_taken_over_whichever_it_is(sign: int) -> None:
    weights = sign * (1 + np.random.default_rng(6).random((4, 512), dtype=np.float32))
    result = transcode_blocks(GgmlType.Q4_1, quantised(GgmlType.Q4_1, weights))
    assert result.accuracy.acceptable
    assert isinstance(result.matrix, Int4Matrix)
    assert np.all(np.sign(result.matrix.block_minimums.numpy()) == -sign)


def test_minimums_of_both_signs_in_a_block_are_reported_with_their_error() -> None:
    """The format cannot hold them; the report says so, and is right."""
    weights = np.random.default_rng(7).random((2, 256), dtype=np.float32) + 1
    weights[:, 32:] -= 3
    stored = quantised(GgmlType.Q4_1, weights)
    result = transcode_blocks(GgmlType.Q4_1, stored)
    assert not result.accuracy.acceptable
    assert not result.accuracy.exact
    check_errors(result, library(GgmlType.Q4_1, stored))


def test_groups_that_are_all_zero_stay_so_and_cost_the_others_nothing() -> None:
    """Also with a scale: all values at the zero point, however large the scale is."""
    weights = np.random.default_rng(8).standard_normal((3, 256)).astype(np.float32) / 1000
    stored = quantised(GgmlType.Q4_0, weights)
    stored[:, 3, :2] = np.array([30000], "<f2").view(np.uint8)
    stored[:, 3, 2:] = 0x88
    result = transcode_blocks(GgmlType.Q4_0, stored)
    assert result.accuracy.acceptable
    assert not result.matrix.dequantise()[:, 96:128].any()
    stored[:, :, 2:] = 0x88
    result = transcode_blocks(GgmlType.Q4_0, stored)
    assert result.accuracy.exact
    assert not result.matrix.dequantise().any()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_scale_that_is_no_number_is_an_error_with_its_place(kind: GgmlType, bad: float) -> None:
    nbytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)][1]
    blocks = np.zeros((3, 2, nbytes), np.uint8)
    blocks[2, 1, :2] = np.array([bad], "<f2").view(np.uint8)
    with pytest.raises(NonFiniteWeightError) as caught:
        transcode_blocks(kind, blocks)
    assert (caught.value.row, caught.value.col) == (2, 256 if kind is GgmlType.Q4_K else 32)


def test_the_table_says_what_comes_out() -> None:
    for kind, form in FORMATS.items():
        blocks = np.zeros((1, 1, gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(kind)][1]), np.uint8)
        matrix = transcode_blocks(kind, blocks).matrix
        assert matrix.format is form
        assert matrix.dequantise().dtype is torch.float32
    assert set(FORMATS.values()) == {WeightFormat.INT8, WeightFormat.INT4}
