"""The forms of the dense weights: read from a checkpoint, each against the checkpoint's own tensors."""

import pytest
import torch

from engine.checkpoint.reader import Checkpoint
from engine.models.linear import PlainLinears, QuantisedLinears
from engine.models.weights import load_as

CPU = torch.device("cpu")


def forms(config):
    hidden, queries = config.hidden_size, config.num_heads * config.head_dim
    shapes = [(config.qkv_rows, hidden), (hidden, queries), (config.vocab_size, hidden)]
    return {
        "plain": (PlainLinears(CPU, torch.float32), 1e-6),
        "8 bits": (QuantisedLinears(CPU, torch.float32, shapes, 2), 1e-2),
    }


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("form", ["plain", "8 bits"])
def test_every_matrix_is_where_it_belongs(make_model, tied, form):
    model = make_model(tie_word_embeddings=tied)
    config, saved = model.config, model.weights
    linears, tolerance = forms(config)[form]
    with Checkpoint(model.path) as checkpoint:
        weights = load_as(linears, checkpoint, config, CPU)

    def check(got, expected):
        assert ((got - expected).norm() / expected.norm()).item() < tolerance

    def plain(linear, inputs):
        return linear(torch.eye(inputs)).T

    assert weights.number_format == torch.float32
    for index, layer in enumerate(weights.layers):
        prefix = f"model.layers.{index}.self_attn."
        qkv = torch.cat([saved[f"{prefix}{name}_proj.weight"] for name in "qkv"]).float()
        check(plain(layer.qkv, config.hidden_size), qkv)
        out = saved[f"{prefix}o_proj.weight"].float()
        check(plain(layer.attention_out, out.shape[1]), out)
    table = saved["model.embed_tokens.weight"].float()
    head = table if tied else saved["lm_head.weight"].float()
    check(plain(weights.output, config.hidden_size), head)
    check(weights.embedding(torch.arange(config.vocab_size)), table)
    assert (weights.embedding.weight is weights.output.weight) == tied
