"""What the whole suite shares: the starter model, converted once and kept for the next run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from engine import starter

# Triton reads this when a kernel's module is imported, whichever test does it first.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Hypothesis fails an example that takes longer than 0.2 s: on a busy computer any may.
settings.register_profile("fiddler", deadline=None)
settings.load_profile("fiddler")

# Names a folder for converted models instead of pytest's own cache, to share them between checkouts.
CACHE_VARIABLE = "FIDDLER_TEST_MODELS"


def _made(config: pytest.Config, name: str, expert_noise: float) -> Path:
    """The starter model called `name` in the cache, made if it is not there or of an older recipe."""
    chosen = os.environ.get(CACHE_VARIABLE)
    cache = Path(chosen) if chosen else config.cache.mkdir("fiddler-models")  # type: ignore[union-attr]
    folder = cache / name
    if not starter.is_ready(folder):
        starter.make(folder, expert_noise=expert_noise)
    return folder


@pytest.fixture(scope="session")
def starter_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the starter model. Tests that use it are marked `starter`, and never write to it."""
    return _made(request.config, "starter", 0.0)


@pytest.fixture(scope="session")
def noisy_starter_dir(request: pytest.FixtureRequest) -> Path:
    """The starter model with 2 % noise on its experts: running a wrong expert moves the logits by about 3."""
    return _made(request.config, "starter-noisy", 0.02)
