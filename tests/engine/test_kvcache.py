"""The cache's book-keeping; what is read from it is tested with attention."""

import pytest
import torch

from engine.errors import GenerationError
from engine.kvcache import KVCache


@pytest.fixture
def config(make_model):
    return make_model().config


def test_reserves_what_the_configuration_says(config):
    cache = KVCache(config, 10, torch.device("cpu"), torch.float32)
    assert cache.nbytes == 10 * config.kv_bytes_per_token(4)


def test_a_layer_is_a_view(config):
    cache = KVCache(config, 10, torch.device("cpu"), torch.float32)
    cache.layer(1).fill_(5.0)
    assert (cache.data[1] == 5).all()


def test_a_full_cache_says_so(config):
    cache = KVCache(config, 10, torch.device("cpu"), torch.float32)
    cache.length = 8
    cache.check_room(2)
    with pytest.raises(GenerationError, match="holds 10 tokens, and 11 are needed"):
        cache.check_room(3)


def test_truncate_only_shortens(config):
    cache = KVCache(config, 10, torch.device("cpu"), torch.float32)
    cache.length = 8
    cache.truncate(5)
    assert cache.length == 5
    for length in (-1, 6):
        with pytest.raises(ValueError, match="cannot cut"):
            cache.truncate(length)
