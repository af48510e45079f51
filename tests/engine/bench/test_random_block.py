"""Random packed experts, decoded here from the layout's description, tile by tile."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.bench.random_block import SPREAD, fill_experts, random_block
from kernels.formats import WeightFormat
from kernels.shape import ExpertShape


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def decode(block: np.ndarray, shape: ExpertShape) -> np.ndarray:
    """The weights of all tiles, float32 [panel, tile of the panel, 16 rows, 32 inputs]."""
    k, form = shape.k_tiles, shape.format
    panels = block[: shape.panels * shape.panel_nbytes].reshape(shape.panels, shape.panel_nbytes)
    side = block[shape.panels * shape.panel_nbytes :].view(np.float16).reshape(-1, 2, 16).astype(np.float32)
    weights = np.empty((shape.panels, 6 * k, 16, 32), np.float32)
    for panel in range(shape.panels):
        for tile in range(6 * k):
            value = panels[panel, tile * form.tile_nbytes : (tile + 1) * form.tile_nbytes]
            group = panels[panel, 6 * k * form.tile_nbytes :][tile * 32 : tile * 32 + 32]
            if form is WeightFormat.BF16:
                wide = value.view(np.uint16).astype(np.uint32) << 16
                rows = wide.view(np.float32).reshape(16, 16, 2).transpose(1, 0, 2).reshape(16, 32)
            elif form is WeightFormat.INT8:
                values = value.view(np.int8).reshape(8, 16, 4).transpose(1, 0, 2).reshape(16, 32)
                rows = values * group.view(np.float16).astype(np.float32)[:, None]
            else:
                words = value.view(np.uint32).reshape(4, 16)
                q = np.empty((16, 32), np.float32)
                for octet in range(4):
                    for j in range(4):
                        q[:, 8 * octet + 2 * j] = words[octet] >> (4 * j) & 15
                        q[:, 8 * octet + 2 * j + 1] = words[octet] >> (16 + 4 * j) & 15
                if tile < 4 * k:
                    entry = (panel * 4 + tile // k) * -(-k // 8) + tile % k // 8
                else:
                    entry = shape.panels * 4 * -(-k // 8) + panel // 8 * 2 * k + tile - 4 * k
                d, e = side[entry]
                s, m = group[:16].astype(np.float32), group[16:].astype(np.float32)
                rows = (d * s)[:, None] * q - (e * m)[:, None]
            weights[panel, tile] = rows
    return weights


@pytest.mark.parametrize("form", list(WeightFormat))
@pytest.mark.parametrize("size", [(64, 96), (288, 320)])
def test_weights_are_finite_around_zero_and_of_the_usual_spread(
    form: WeightFormat, size: tuple[int, int]
) -> None:
    shape = ExpertShape(*size, form)
    block = random_block(shape, generator())
    assert block.dtype == torch.uint8
    assert block.shape == (shape.nbytes,)
    weights = decode(block.numpy(), shape)
    assert np.isfinite(weights).all()
    assert abs(weights.mean()) < 0.1 * SPREAD
    for tile in weights.reshape(-1, 16, 32):  # no part was forgotten: every tile has weights of its own
        assert 0.5 * SPREAD < np.sqrt((tile**2).mean()) < 2 * SPREAD
        assert len(np.unique(tile)) > 100
        assert (tile < 0).any()
        assert (tile > 0).any()


def test_sizes_that_need_padding_are_refused() -> None:
    for size in ((33, 64), (64, 40)):
        with pytest.raises(ValueError, match="multiple of 32"):
            random_block(ExpertShape(*size), generator())


@pytest.mark.parametrize("form", list(WeightFormat))
def test_experts_lie_one_after_the_other(form: WeightFormat) -> None:
    shape = ExpertShape(64, 32, form)
    arena = torch.zeros(3 * shape.nbytes + 7, dtype=torch.uint8)
    heard: list[int] = []
    experts = fill_experts(arena, shape, 3, generator(), heard.append)
    expected = random_block(shape, generator())
    assert [expert.data_ptr() - arena.data_ptr() for expert in experts] == [
        place * shape.nbytes for place in range(3)
    ]
    assert all(torch.equal(expert, expected) for expert in experts)
    assert not arena[3 * shape.nbytes :].any()
    assert heard == [0, 1, 2]
