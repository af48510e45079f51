from __future__ import annotations

from dataclasses import replace

from engine.bench.kernel_report import Figure, KernelReport
from engine.bench.kernel_summary import summary
from engine.bench.kernel_table import table
from engine.bench.timing import Times

# Milliseconds of an expert. Reading at 100 GB/s takes 0.2 ms in bf16 and 0.05 ms in int4.
MS = {
    ("bf16", "portable"): {1: 9.0, 4: 9.0, 64: 90.0, 256: 400.0},
    ("bf16", "amx"): {1: 0.25, 4: 0.3, 64: 0.3, 256: 0.8},
    ("int4", "portable"): {1: 1.0, 4: 5.0},
    ("int4", "amx"): {1: 0.1, 4: 0.2, 64: 0.25, 256: 1.0},
}
BYTES = {"bf16": 20_000_000, "int4": 5_000_000}


def report() -> KernelReport:
    """Experts of 1000 × 2000: 12 million operations for a token."""
    machine = {"cpu": "A processor", "threads": 4, "torch": "2.0"}
    found = KernelReport(machine, 1000, 2000, 2, reads=[100.0], torch={1: 0.0005}, complete=True)
    for (form, isa), times in MS.items():
        for tokens, ms in times.items():
            found.figures.append(Figure(form, isa, tokens, BYTES[form], Times(ms / 1e3, ms / 500, 7)))
    return found


def with_tokens(*tokens: int) -> KernelReport:
    found = report()
    found.figures = [figure for figure in found.figures if figure.tokens in tokens]
    return found


def test_each_format_has_two_lines_of_its_best_instruction_set() -> None:
    assert summary(report()) == [
        "bf16 with amx: 1 token at 80% of plain reading, 2.0× as fast as torch in bf16; "
        "64 tokens take 1.20× as long.",
        "               3.84 TFLOP/s with 256 tokens.",
        "int4 with amx: 1 token at 50% of plain reading, 5.0× as fast as torch in bf16; "
        "64 tokens take 2.50× as long.",
        "               3.07 TFLOP/s with 256 tokens; 2.50× as fast as bf16 with 1 token, 1.50× with 4.",
    ]


def test_they_stand_under_the_table() -> None:
    assert table(report())[-5:] == ("", *summary(report()))
    empty = replace(report(), figures=[])
    assert summary(empty) == []
    assert "activ." in table(empty)[-1]


def test_what_was_not_measured_is_left_out() -> None:
    few = with_tokens(1)
    few.torch.clear()
    assert summary(few)[2:] == [
        "int4 with amx: 1 token at 50% of plain reading.",
        "               0.12 TFLOP/s with 1 token; 2.50× as fast as bf16 with 1 token.",
    ]
    assert summary(with_tokens(4, 64))[1:] == [
        "int4 with amx: 3.07 TFLOP/s with 64 tokens; 1.50× as fast as bf16 with 4 tokens.",
    ]


def test_formats_are_compared_on_one_instruction_set() -> None:
    """bf16 may lack the best one, as an interrupted run of `--formats int4,bf16` does."""
    found = report()
    found.figures = [each for each in found.figures if (each.format, each.isa) != ("bf16", "amx")]
    lines = summary(found)
    assert lines[0].startswith("bf16 with portable: 1 token at 2% of plain reading")
    assert lines[3].strip() == "3.07 TFLOP/s with 256 tokens."


def test_the_best_is_the_highest_level_in_any_order_and_an_unknown_one_is_higher() -> None:
    found = report()
    found.figures.reverse()
    assert [line[:13] for line in summary(found) if line[0] != " "] == ["int4 with amx", "bf16 with amx"]
    found.figures = [
        replace(each, isa={"portable": "avx10"}.get(each.isa, each.isa)) for each in found.figures
    ]
    assert summary(found)[0].startswith("int4 with avx10: 1 token at 5% ")
