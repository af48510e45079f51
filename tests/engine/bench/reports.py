"""A report with round numbers, for the tests of what shows it."""

from __future__ import annotations

from engine.bench.kernel_report import EIGHT_BIT, EXACT, Figure, KernelReport, LeftOut
from engine.bench.timing import Times


def round_report() -> KernelReport:
    """Experts of 1000 × 2000 that would take 0.2 ms (bf16: 20 MB) by reading at 100 GB/s."""
    machine = {"cpu": "A processor", "threads": 4, "torch": "2.0"}
    report = KernelReport(machine, 1000, 2000, 2, reads=[80.0, 100.0, 99.0])
    for form, nbytes in (("bf16", 20_000_000), ("int4", 5_000_000)):
        for isa, slower in (("portable", 4), ("avx2", 1)):
            for tokens in (1, 4):
                best = nbytes * tokens * slower / 50e9
                activations = EIGHT_BIT if (form, isa, tokens) == ("int4", "avx2", 4) else EXACT
                times = Times(best, 2 * best, 7)
                report.figures.append(Figure(form, isa, tokens, nbytes, times, activations))
        report.left_out.append(LeftOut(form, "portable", 16, 3.25))
        report.rotations[form] = {"count": 6, "bytes": nbytes, "short": form == "int4"}
    report.torch[1] = 0.0008
    report.complete = True
    return report
