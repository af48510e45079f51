from dataclasses import replace

import pytest

from engine import known_models
from engine.gpu_format import (
    dense_in_8_bits,
    gpu_dense_bytes,
    gpu_value_bytes,
    host_table_bytes,
    rows_unpacked,
)
from engine.units import MIB
from kernels.formats import WeightFormat

MIXTRAL, STARTER = known_models.mixtral_8x7b(), known_models.starter()


def test_small_models_are_computed_in_float32_and_mixtral_in_bf16() -> None:
    assert gpu_value_bytes(STARTER) == 4
    assert gpu_value_bytes(MIXTRAL) == 2


@pytest.mark.parametrize("weight_format", list(WeightFormat))
def test_everything_is_8_bits_where_the_experts_are_quantised_and_the_model_is_large(weight_format) -> None:
    assert dense_in_8_bits(2, weight_format) == (weight_format is not WeightFormat.BF16)
    assert not dense_in_8_bits(4, weight_format)


def test_plain_bytes() -> None:
    assert gpu_dense_bytes(STARTER, WeightFormat.INT8) == 2 * STARTER.other_bytes
    routers = 32 * (8 + 2) * 4096 + 4096
    table = 2 * 32000 * 4096
    assert gpu_dense_bytes(MIXTRAL, WeightFormat.BF16) == MIXTRAL.other_bytes - table + 2 * routers


def test_a_table_of_its_own_stays_in_ram() -> None:
    untied = replace(STARTER, config=replace(STARTER.config, tie_word_embeddings=False))
    assert gpu_dense_bytes(untied, WeightFormat.BF16) == gpu_dense_bytes(STARTER, WeightFormat.BF16)
    assert host_table_bytes(untied) >= 2 * STARTER.config.vocab_size * STARTER.config.hidden_size
    assert host_table_bytes(STARTER) == 0


@pytest.mark.parametrize(
    ("vocabulary", "hidden", "mib"),
    [(32000, 4096, 256), (32768, 4096, 256), (32769, 4096, 512), (32768, 6144, 512)],
)
def test_pinned_memory_comes_in_powers_of_two(vocabulary: int, hidden: int, mib: int) -> None:
    config = replace(MIXTRAL.config, vocab_size=vocabulary, hidden_size=hidden)
    assert host_table_bytes(replace(MIXTRAL, config=config)) == mib * MIB


def test_8_bits_take_half_as_much_and_a_place_to_unpack() -> None:
    routers = 32 * (8 + 2) * 4096 + 4096
    matrices = MIXTRAL.config.other_parameters - routers - 32000 * 4096  # without the table of embeddings
    unpacked = 64 * MIB  # a quarter of the output layer
    for weight_format in (WeightFormat.INT8, WeightFormat.INT4):
        assert gpu_dense_bytes(MIXTRAL, weight_format) == matrices * 17 // 16 + 4 * routers + unpacked


def test_rows_that_are_unpacked_at_a_time() -> None:
    assert rows_unpacked(6144, 4096, 2) == 6144
    assert rows_unpacked(32000, 4096, 2) == 8192
    assert rows_unpacked(10, 100 * MIB, 2) == 1
