"""Compile the dense kernels for a GPU that need not be there: python compile_dense.py 90

Prints the names of the kernels. Run by test_compile.py in a process of its own, since the interpreter leaves
no kernel that could be compiled.
"""

from __future__ import annotations

import sys

import torch

from kernels.gpu import attention, linear, numbers, residual, rope, router
from kernels.quantised import Int8Matrix
from tests.kernels.gpu.compile_launch import compile_for

BF16 = torch.bfloat16
# Heads that the attention takes at most, and query heads for each key head.
WIDEST = [(BF16, 512, 32), (BF16, 128, 128), (torch.float32, 256, 32), (torch.float32, 64, 128)]


def in_8_bits(rows, cols):
    values = torch.zeros(rows, cols, dtype=torch.int8)
    return Int8Matrix(values, torch.zeros(rows, -(-cols // 32), dtype=torch.float16))


def launch_linear(dtype):
    x = torch.zeros(16, 256, dtype=dtype)
    for weight in (torch.zeros(64, 256, dtype=dtype), in_8_bits(64, 256)):
        for tokens in (1, 16):
            linear.linear_small(x[:tokens], weight, torch.zeros(tokens, 64), add=tokens > 1)
        linear.embed_rows(torch.zeros(16, dtype=torch.int64), weight, torch.zeros(16, 256))
    for cols in (4096, 4160):  # a whole number of blocks, and not
        linear.linear_small(torch.zeros(1, cols, dtype=dtype), in_8_bits(33, cols), torch.zeros(1, 33))
    linear.dequantise(in_8_bits(64, 256), torch.zeros(64, 256, dtype=dtype))
    linear.linear_small(x[:2, :45].contiguous(), torch.zeros(7, 45, dtype=dtype), torch.zeros(2, 7))


def launch_attention(dtype, head_dim, heads=8):
    store = torch.zeros(2, 2, 64, head_dim, dtype=dtype)
    qkv, table = torch.zeros(1, (heads + 4) * head_dim), torch.zeros(64, head_dim)
    positions, rows = torch.zeros(1, dtype=torch.int32), torch.zeros(1, 64, dtype=torch.int32)
    rope.rope_and_store(qkv, table, table, positions, rows, store)
    scratch = attention.AttentionScratch.make(1, heads, 2, head_dim, 64, torch.device("cpu"))
    out = torch.zeros(1, heads * head_dim, dtype=dtype)
    attention.attend(qkv, store, rows, positions, 7, scratch, out)


def launch_between(dtype):
    x, norm, parts = torch.zeros(1, 256), torch.zeros(256), torch.zeros(2, 8, 256)
    ids, weights = torch.zeros(1, 2, dtype=torch.int32), torch.zeros(1, 2)
    normed, control = torch.zeros(1, 256, dtype=dtype), torch.zeros(17, dtype=torch.int32)
    table = torch.zeros(8, dtype=torch.int32)
    residual.collect_and_norm(x, parts, table, parts, ids, control, x, norm, 1e-5, normed)
    to = router.Routed(normed, ids, weights, x, ids, weights)
    for experts in (8, 256):
        weight = torch.zeros(experts, 256)
        router.route(x, norm, weight, 1e-5, to)
        router.route(x, norm, weight, 1e-5, to, forced=ids, positions=ids[0])


compile_for(int(sys.argv[1]))
linear.dot_format = attention.dot_format = numbers.triton_format  # as on a GPU
for number_format in (BF16, torch.float32):
    launch_linear(number_format)
    launch_between(number_format)
    for size in (6, 128, 256):
        launch_attention(number_format, size)
for number_format, size, group in WIDEST:
    launch_attention(number_format, size, 2 * group)
