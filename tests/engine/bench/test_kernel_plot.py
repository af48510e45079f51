from __future__ import annotations

import struct
import sys
from dataclasses import replace

import pytest

from engine.bench.errors import BenchError
from engine.bench.kernel_plot import check_can_draw, draw
from engine.bench.kernel_report import EXACT, KernelReport
from tests.engine.bench.reports import round_report


def size(png: bytes) -> tuple[int, int]:
    """Width and height of a PNG, from its first chunk (PNG specification, 11.2.2)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert png[12:16] == b"IHDR"
    assert png[-8:-4] == b"IEND"
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def only(report: KernelReport, form: str) -> KernelReport:
    report.figures = [figure for figure in report.figures if figure.format == form]
    return report


def test_the_picture_is_a_png_with_a_panel_for_each_format() -> None:
    pytest.importorskip("matplotlib")
    narrow, height = size(draw(only(round_report(), "int4")))
    wide, same = size(draw(round_report()))
    assert 500 < narrow < wide < 4000
    assert height == same > 400


def test_what_is_drawn_depends_on_the_figures() -> None:
    pytest.importorskip("matplotlib")
    pictures = {draw(round_report()), draw(only(round_report(), "bf16")), draw(only(round_report(), "int4"))}
    report = round_report()
    report.torch.clear()
    pictures.add(draw(report))
    report = round_report()
    report.figures = [replace(figure, activations=EXACT) for figure in report.figures]
    pictures.add(draw(report))
    assert len(pictures) == 5
    assert draw(round_report()) in pictures


def test_an_instruction_set_of_the_future_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    report = round_report()
    report.figures = [replace(figure, isa="avx10") for figure in report.figures[:2]]
    assert size(draw(report))[0] > 500


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BenchError, match="not installed") as caught:
        check_can_draw()
    assert "pip install matplotlib" in caught.value.action
