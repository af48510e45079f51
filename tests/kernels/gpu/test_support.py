"""Finding out whether Triton works; the trial kernel is replaced, so that no GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from kernels.gpu import host, support

GPU = torch.device("cuda", 0)


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Tensors of the trial lie on the CPU, the GPU is not the oldest, and nothing is remembered."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch, "zeros", lambda *size, device: torch.full(size, 0.0))
    monkeypatch.setattr(
        torch,
        "ones",
        lambda *size, dtype=torch.float32, device=None, pin_memory=False: torch.full(size, 1, dtype=dtype),
    )
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 0))
    support.why_not.cache_clear()
    yield monkeypatch
    support.why_not.cache_clear()


def test_the_cpu_is_no_gpu() -> None:
    assert not support.usable(torch.device("cpu"))
    assert "NVIDIA" in support.why_not(torch.device("cpu"))


def test_a_kernel_that_works_is_tried_once(trial: pytest.MonkeyPatch) -> None:
    calls = []

    def add(out: Tensor, values: Tensor, rows: Tensor) -> None:
        calls.append(out)
        out[rows] += values

    trial.setattr(host, "add_from_host", add)
    assert support.why_not(GPU) == ""
    assert support.usable(GPU)
    assert len(calls) == 1


def test_a_gpu_that_is_full_is_asked_again(trial: pytest.MonkeyPatch) -> None:
    def fail(out: Tensor, values: Tensor, rows: Tensor) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with trial.context() as full:
        full.setattr(host, "add_from_host", fail)
        with pytest.raises(torch.OutOfMemoryError):
            support.usable(GPU)
    trial.setattr(host, "add_from_host", lambda out, values, rows: out.index_add_(0, rows, values))
    assert support.usable(GPU)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("Failed to find C compiler."), "RuntimeError: Failed to find C compiler."),
        (OSError("first\nno space left"), "OSError: no space left"),
        (ValueError(), "ValueError"),
        (AssertionError("libcuda.so cannot found!"), "libcuda.so cannot found"),  # Triton's words
        (ImportError("undefined symbol: cuInit"), "undefined symbol"),  # of a launcher that was built
    ],
)
def test_a_kernel_that_fails(trial: pytest.MonkeyPatch, error: Exception, told: str) -> None:
    def fail(out: Tensor, values: Tensor, rows: Tensor) -> None:
        raise error

    trial.setattr(host, "add_from_host", fail)
    assert not support.usable(GPU)
    assert told in support.why_not(GPU)


def test_a_kernel_that_does_nothing(trial: pytest.MonkeyPatch) -> None:
    trial.setattr(host, "add_from_host", lambda out, values, rows: None)
    assert "wrong numbers" in support.why_not(GPU)


def test_without_triton(trial: pytest.MonkeyPatch) -> None:
    trial.setitem(sys.modules, "triton.errors", None)  # importing it raises ImportError
    assert "not installed" in support.why_not(GPU)


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)])
def test_a_gpu_that_triton_does_not_support_is_not_tried(
    trial: pytest.MonkeyPatch, capability: tuple[int, int]
) -> None:
    trial.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    trial.setattr(host, "add_from_host", None)
    assert f"capability is 7.{capability[1]}, and" in support.why_not(GPU)


def test_interpreted_kernels_do_not_count(trial: pytest.MonkeyPatch) -> None:
    trial.setenv("TRITON_INTERPRET", "1")
    assert "TRITON_INTERPRET" in support.why_not(GPU)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
def test_this_gpu() -> None:
    assert support.why_not(torch.device("cuda")) == ""
