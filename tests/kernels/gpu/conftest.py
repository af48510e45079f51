"""The Triton kernels on a GPU where there is one, and in Triton's interpreter, on the CPU, where not."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")

if not torch.cuda.is_available():
    from tests.kernels.gpu import interpreter

    interpreter.mend()


@pytest.fixture(
    params=[
        pytest.param(
            "cpu",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="compiled for the GPU instead"),
        ),
        pytest.param(
            "cuda",
            marks=[
                pytest.mark.gpu,
                pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU"),
            ],
        ),
    ]
)
def device(request: pytest.FixtureRequest) -> torch.device:
    """Where the kernels of a test run."""
    return torch.device(request.param)
