"""Compile kernels in place of launching them, for a GPU that need not be there."""

from __future__ import annotations

import json
import re

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

SHARED_BYTES = 99 << 10  # that a program may have on the cards of desktops, capability 8.6, 8.9 and 12.0
TYPES = {
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.float32: "*fp32",
    torch.uint8: "*u8",
    torch.int8: "*i8",
    torch.int32: "*i32",
    torch.int64: "*i64",
}


def compile_for(capability: int) -> None:
    """From now on a launch compiles, for that compute capability, what a GPU would be given.

    It prints the kernel's name. Tensors may lie on the CPU.
    """

    def compile_launch(kernel, *args, grid, warmup, **keywords):
        names = [parameter.name for parameter in kernel.params]
        values = dict(zip(names, args, strict=False))
        values |= {key: keywords[key] for key in names if key in keywords}
        options = {key: value for key, value in keywords.items() if key not in names}
        signature, constants, attributes = {}, {}, {}
        for place, parameter in enumerate(kernel.params):
            name, value = parameter.name, values[parameter.name]
            if parameter.is_constexpr or value is None or (isinstance(value, int) and value == 1):
                signature[name], constants[name] = "constexpr", value
            elif isinstance(value, torch.Tensor):
                signature[name] = TYPES[value.dtype]
                attributes[(place,)] = [["tt.divisibility", 16]]
            elif isinstance(value, int):
                signature[name] = "i32"
                if value % 16 == 0:
                    attributes[(place,)] = [["tt.divisibility", 16]]
            else:
                signature[name] = "fp32"
        source = ASTSource(kernel, signature, constants, attributes)
        compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
        check_reductions(compiled.asm["ttgir"])
        assert compiled.metadata.shared <= SHARED_BYTES, f"{kernel.fn.__name__}: {compiled.metadata.shared}"
        print(kernel.fn.__name__)

    JITFunction.run = compile_launch


def check_reductions(ttgir: str) -> None:
    """Raise AssertionError for a reduction that Triton 3.6 gets wrong.

    Along the reduced axis it takes a warp's lanes, and a block's warps, to be neighbours. In a layout that
    came out of a reshape they need not be: sums then mix what belongs to other rows. Triton's pull request
    9219 of January 2026 mends it.
    """
    layouts = {}  # what each bit of a lane's and of a warp's number moves along the axes
    for name, fields in re.findall(r"^(#\w+) = #ttg\.linear<\{(.*)\}>", ttgir, re.MULTILINE):
        parts = re.findall(r"(?:lane|warp) = (\[(?:\[[\d, ]+\](?:, )?)*\])", fields)
        layouts[name] = [json.loads(part) for part in parts]
    reductions = re.findall(
        r'"tt\.reduce".*?<\{axis = (\d+).*?^ *\}\).*?: \((.*?)\) ->', ttgir, re.MULTILINE | re.DOTALL
    )
    assert len(reductions) == ttgir.count('"tt.reduce"')
    for axis, operand in reductions:
        for name in set(re.findall(r"#\w+", operand)) & set(layouts):
            assert "slice" not in operand, f"not understood: {operand}"
            for bases in layouts[name]:
                along = [place for place, base in enumerate(bases) if base[int(axis)]]
                assert not along or along == list(range(along[0], along[-1] + 1)), (
                    f"axis {axis} of {operand}: {bases}"
                )
