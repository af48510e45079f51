"""The forms of the dense weights: read from a checkpoint, each against the checkpoint's own tensors."""

import pytest
import torch

from engine.checkpoint.reader import Checkpoint
from engine.models.linear import PlainLinears, QuantisedLinears
from engine.models.weights import HostEmbedding, TableEmbedding, load_as

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


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("pinned", [True, False])
def test_a_gpu_reads_embeddings_from_pinned_memory_if_there_is_any(make_model, monkeypatch, pinned):
    model, gpu = make_model(), torch.device("cuda")
    if not pinned:

        def refuse(_):
            raise RuntimeError("CUDA error: out of memory")

        monkeypatch.setattr(torch.Tensor, "pin_memory", refuse)
    with Checkpoint(model.path) as checkpoint:
        weights = load_as(PlainLinears(gpu, torch.bfloat16), checkpoint, model.config, gpu)
    assert isinstance(weights.embedding, HostEmbedding if pinned else TableEmbedding)
    assert weights.embedding.weight.device.type == ("cpu" if pinned else "cuda")
    ids = torch.tensor([3, 0, model.config.vocab_size - 1])
    rows = weights.embedding(ids)
    assert rows.device.type == "cuda"
    assert torch.equal(rows.cpu(), model.weights["model.embed_tokens.weight"][ids].float())
