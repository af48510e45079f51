"""From a checkpoint's matrices to 8 and 4 bits, and to the packed layout of experts (`kernels.layout`).

All functions run on the calling thread with the GIL released: several threads fill a machine. The quantisers
give the same bits on every instruction set.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernels import native
from kernels.errors import raise_fault
from kernels.formats import WeightFormat
from kernels.isa import Isa, check_available, default_isa
from kernels.layout import check_block, check_expert, describe
from kernels.quantised import Int4Matrix, Int8Matrix, QuantisedMatrix, block_count, group_count
from kernels.rows import MATRICES, pack_expert_rows
from kernels.shape import ExpertShape


def quantise(
    weight: Tensor, format: WeightFormat, *, name: str = "the matrix", isa: Isa | None = None
) -> QuantisedMatrix:
    """Return a matrix [rows, cols], bf16 or float32, in INT8 or INT4 with the least squared error we find.

    int8: relative error of normal weights 0.5 %. int4: 7.0 %, where the range from the least to the greatest
    weight of each group has 7.8 %; on no block of 256 weights is the error above that of the latter.

    Raises:
        NonFiniteWeightError: a weight is NaN or infinite; the first one, in `name`.
        WeightRangeError: a weight is too large for float16 scales: from about 8e6 on in INT8, 1.6e7 in INT4.
        ValueError: the tensor or the format is another one.
    """
    if (
        weight.dtype not in (torch.bfloat16, torch.float32)
        or weight.dim() != 2
        or 0 in weight.shape
        or not weight.is_contiguous()
        or not weight.is_cpu
    ):
        raise ValueError(f"{name} must be contiguous bf16 or float32 on the CPU, not {describe(weight)}")
    rows, cols = weight.shape
    to: QuantisedMatrix
    if format is WeightFormat.INT8:
        values = torch.zeros(rows, cols, dtype=torch.int8)
        to = Int8Matrix(values, torch.zeros(rows, group_count(cols), dtype=torch.float16))
    elif format is WeightFormat.INT4:
        to = Int4Matrix(
            values=torch.zeros(rows, cols, dtype=torch.uint8),
            scales=torch.zeros(rows, group_count(cols), dtype=torch.uint8),
            minimums=torch.zeros(rows, group_count(cols), dtype=torch.uint8),
            block_scales=torch.zeros(rows, block_count(cols), dtype=torch.float16),
            block_minimums=torch.zeros(rows, block_count(cols), dtype=torch.float16),
        )
    else:
        raise ValueError(f"{format} is not a quantised format")
    level = check_available(isa) if isa is not None else default_isa()
    fault = native.load().quantise(
        level.value, format.number, weight.data_ptr(), weight.dtype == torch.bfloat16, _native_matrix(to)
    )
    raise_fault(fault, (name,))
    return to


def pack_expert(
    w1: Tensor, w3: Tensor, w2: Tensor, out: Tensor, format: WeightFormat = WeightFormat.BF16
) -> None:
    """Pack bf16 w1, w3 [intermediate, hidden] and w2 [hidden, intermediate] into out, uint8 [nbytes].

    INT8 and INT4 are quantised on the way, sixteen rows at a time.

    Raises:
        NonFiniteWeightError: a weight is NaN or infinite; `matrix` is "w1", "w3" or "w2".
        WeightRangeError: a weight is too large for the format.
        ValueError: the tensors do not belong together.
    """
    shape = check_expert(w1, w3, w2, out, format)
    for name, matrix in zip(MATRICES, (w1, w3, w2), strict=True):
        pack_expert_rows(name, 0, matrix, out, shape)


def pack_quantised(w1: QuantisedMatrix, w3: QuantisedMatrix, w2: QuantisedMatrix, out: Tensor) -> None:
    """Pack w1, w3 [intermediate, hidden] and w2 [hidden, intermediate] of one format into out.

    `out`: uint8 [nbytes]. Every value and parameter is kept as it is. Raises ValueError where they do not
    belong together.
    """
    shape = ExpertShape(hidden=w1.cols, intermediate=w1.rows, format=w1.format)
    for name, matrix, size in (
        ("w3", w3, (shape.intermediate, shape.hidden)),
        ("w2", w2, (shape.hidden, shape.intermediate)),
    ):
        if matrix.format is not shape.format or (matrix.rows, matrix.cols) != size:
            raise ValueError(
                f"{name} must be {shape.format} {list(size)} as w1 is, "
                f"not {matrix.format} {[matrix.rows, matrix.cols]}"
            )
    check_block(out, shape)
    native.load().pack_quantised(
        shape.hidden,
        shape.intermediate,
        shape.format.number,
        *(_native_matrix(matrix) for matrix in (w1, w3, w2)),
        out.data_ptr(),
    )


def _native_matrix(matrix: QuantisedMatrix) -> Any:
    """The native view of a matrix; it does not keep the tensors alive."""
    if not matrix.values.is_cpu:
        raise ValueError("only matrices on the CPU can be packed")
    if isinstance(matrix, Int8Matrix):
        return native.load().int8_matrix(
            matrix.rows, matrix.cols, matrix.values.data_ptr(), matrix.scales.data_ptr()
        )
    return native.load().int4_matrix(
        matrix.rows,
        matrix.cols,
        matrix.values.data_ptr(),
        matrix.scales.data_ptr(),
        matrix.minimums.data_ptr(),
        matrix.block_scales.data_ptr(),
        matrix.block_minimums.data_ptr(),
    )
