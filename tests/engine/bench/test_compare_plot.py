"""The picture of a comparison: a panel for each kind of figures that there are."""

from __future__ import annotations

import sys

import pytest

from engine.bench.compare_plot import draw
from engine.bench.compare_points import Kind, Point
from engine.bench.compare_store import Comparison
from engine.bench.errors import BenchError
from tests.engine.bench.comparisons import full_comparison, record, setup
from tests.engine.bench.test_kernel_plot import size


def only(kind: Kind) -> Comparison:
    whole = full_comparison()
    whole.records = {key: kept for key, kept in whole.records.items() if key[0].startswith(kind)}
    return whole


def test_the_picture_grows_with_the_kinds_of_figures() -> None:
    pytest.importorskip("matplotlib")
    narrow, height = size(draw(only(Kind.BEAMS)))
    wide, same = size(draw(full_comparison()))
    assert 500 < narrow < wide < 4000
    assert height == same


def test_what_is_drawn_depends_on_the_figures() -> None:
    pytest.importorskip("matplotlib")
    without = full_comparison()
    without.records = {key: kept for key, kept in without.records.items() if key[1] != "stream"}
    pictures = {draw(full_comparison()), draw(without), draw(only(Kind.PROMPT)), draw(only(Kind.BEAMS))}
    assert len(pictures) == 4
    assert draw(full_comparison()) in pictures


def test_figures_that_belong_in_no_panel_leave_an_empty_picture() -> None:
    pytest.importorskip("matplotlib")
    comparison = Comparison(setup())
    comparison.add(record(Point(Kind.DECODE, 32, "cpu", 24)))
    assert min(size(draw(comparison))) > 0


def test_without_matplotlib_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(BenchError, match="matplotlib"):
        draw(full_comparison())
