"""What the libraries below raise becomes an error of the engine that says what to do."""

import pytest
import torch

from engine.errors import HardwareError, MemoryFullError
from engine.explained import explained
from kernels.errors import PoolError


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (PoolError("The system does not give 9 threads.", "Choose fewer."), HardwareError, "9 threads"),
        (torch.OutOfMemoryError("CUDA out of memory."), MemoryFullError, "graphics card's memory is full"),
        (MemoryError(), MemoryFullError, "computer's memory is full"),
        (
            RuntimeError("[enforce fail at alloc.cpp:1] DefaultCPUAllocator: not enough memory: you tried"),
            MemoryFullError,
            "computer's memory is full",
        ),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be"), MemoryFullError, "driver"),
        (RuntimeError("Triton Error [CUDA]: out of memory"), MemoryFullError, "driver"),
    ],
)
def test_errors_of_libraries_are_said_in_our_words(raised, kind, said):
    with pytest.raises(kind, match=said) as caught, explained():
        raise raised
    assert caught.value.action
    assert caught.value.__cause__ is raised


@pytest.mark.parametrize(
    "raised",
    [ValueError("a fault"), KeyboardInterrupt(), RuntimeError("CUDA error: an illegal memory access")],
)
def test_all_others_stay_what_they_are(raised):
    with pytest.raises(type(raised)) as caught, explained():
        raise raised
    assert caught.value is raised


def test_a_tensor_for_which_the_computer_has_no_memory_is_a_shortage():
    with pytest.raises(MemoryFullError, match="computer's memory is full"), explained():
        torch.empty(1 << 60, dtype=torch.uint8)
