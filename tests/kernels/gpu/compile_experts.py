"""Compile the kernels of packed experts for a GPU that need not be there: python compile_experts.py 90

Prints the names of the kernels. Run by test_compile.py in a process of its own, as compile_dense.py is.
"""

from __future__ import annotations

import sys

import torch

from kernels.formats import WeightFormat
from kernels.gpu import experts, unpack
from kernels.gpu.experts import ExpertScratch
from kernels.shape import ExpertShape
from tests.kernels.gpu.compile_launch import compile_for


def launch(shape: ExpertShape, tokens: int, dtype: torch.dtype) -> None:
    data = torch.zeros(2, -(-shape.nbytes // 512) * 512, dtype=torch.uint8)
    x, ids = torch.zeros(tokens, shape.hidden, dtype=dtype), torch.zeros(tokens, 2, dtype=torch.int32)
    scratch = ExpertScratch.make(shape, 2 * tokens, torch.device("cpu"))
    table = torch.zeros(8, dtype=torch.int32)
    inputs = data, shape, x, ids, torch.zeros(tokens, 2), table
    if tokens == 1:
        experts.run_streamed(*inputs, table, scratch)
    else:
        experts.run_residents(*inputs, scratch)


capability = int(sys.argv[1])
compile_for(capability)
# How many tokens share a program only says how often its loops are unrolled, which takes long to compile: so
# the most are compiled in the format with the shortest loops, and fewer in the others.
narrow, experts._NARROW = experts._NARROW, 0  # as if this one were too large for offsets of 32 bits
launch(ExpertShape(75, 33, WeightFormat.INT4), 1, torch.float32)
experts._NARROW = narrow
for format in WeightFormat:
    most = 16 if format is WeightFormat.BF16 else 4
    for tokens, dtype in [(1, torch.float32), (most, torch.float32 if capability < 90 else torch.bfloat16)]:
        launch(ExpertShape(300, 70, format), tokens, dtype)
    odd = ExpertShape(75, 33, format)
    launch(odd, 1, torch.bfloat16)
    for dtype in (torch.float32, torch.bfloat16):
        block, gate_up = torch.zeros(odd.nbytes + 15, dtype=torch.uint8), torch.zeros(66, 75, dtype=dtype)
        start = -block.data_ptr() % 16
        block = block[start : start + odd.nbytes]
        unpack.unpack(block, odd, (0, 2), gate_up, torch.zeros(75, 33, dtype=dtype))
