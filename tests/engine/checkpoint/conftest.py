from __future__ import annotations

import numpy as np
import pytest

from engine.checkpoint.gguf_quants import GgmlType
from tests.engine.checkpoint.gguf_files import write


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with two entries and two tensors, to be damaged."""
    weights = np.random.default_rng(0).standard_normal((3, 256), dtype=np.float32)
    path = write(
        tmp_path_factory.mktemp("gguf") / "small.gguf",
        {"x.list": ["a", "bc"], "x.number": 7},
        {
            "one": (weights, GgmlType.Q4_1),
            "two": (weights[0], GgmlType.F32),
            "k": (weights[:2], GgmlType.Q4_K),
        },
    )
    return path.read_bytes()
