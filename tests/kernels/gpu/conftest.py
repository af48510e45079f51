"""The Triton kernels on a GPU where there is one, and in Triton's interpreter, on the CPU, where not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

pytest.importorskip("triton")

if not torch.cuda.is_available():
    from triton.runtime import interpreter

    _patch_tensors = interpreter._patch_lang_tensor

    def _patch_tensors_and_index(tensor: Any, scope: Any) -> None:
        """Let a loaded number end a range: Triton 3.6 makes it int() of an array [1], numpy 2.4 refuses."""
        _patch_tensors(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = _patch_tensors_and_index


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
