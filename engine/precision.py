"""The precisions that experts can be held in, in words: their names and their costs. Torch-free."""

from __future__ import annotations

from kernels.formats import WeightFormat

PRECISIONS: tuple[str, ...] = tuple(str(weight_format) for weight_format in WeightFormat)

_NAMES = {WeightFormat.BF16: "bf16", WeightFormat.INT8: "8 bits", WeightFormat.INT4: "4 bits"}
# The starter's perplexity on the calibration's text (benchmarks/perplexity.py): the same within 0.1 % in 8
# bits; 10 % higher in 4 if its weights are spread beside the grid of the 4-bit file that they come from (the
# same as it comes).
_COSTS = {
    WeightFormat.BF16: "nothing is lost, and nothing is saved.",
    WeightFormat.INT8: "about half of the memory of bf16; the answers are practically the same.",
    WeightFormat.INT4: "less than a third of the memory of bf16; the answers are somewhat less good.",
}


def precision_name(weight_format: WeightFormat) -> str:
    """A precision as people call it: "bf16", "8 bits", "4 bits"."""
    return _NAMES[weight_format]


def precision_text(weight_format: WeightFormat) -> str:
    """What a precision costs, in one sentence."""
    return f"Experts in {_NAMES[weight_format]}: {_COSTS[weight_format]}"
