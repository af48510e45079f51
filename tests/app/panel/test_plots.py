from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from pytestqt.qtbot import QtBot

from app.panel.answers_plot import AnswersPlot
from app.panel.expert_map import ExpertMap
from app.panel.figures import ExpertGrid
from app.panel.pace_plot import PacePlot
from app.panel.ticks import ticks
from engine.events import ExpertHits
from engine.pace import Pace
from tests.app.fakes import make_status

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@given(st.integers(0, 300), st.floats(0.1, 50), st.floats(1, 60), st.integers(0, 50))
def test_numbers_never_touch(count: int, cell: float, label: float, before: int) -> None:
    chosen = ticks(count, cell, label, before)
    assert chosen == sorted(set(chosen))
    assert not count or chosen[0] == 0
    assert all(0 <= index < count for index in chosen)
    assert all((after - before) * cell >= label for before, after in pairwise(chosen))


def test_numbers_are_round_and_the_last_is_there_where_it_fits() -> None:
    assert [index + 1 for index in ticks(8, 20, 15)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [index + 1 for index in ticks(32, 10, 14)] == [1, 5, 10, 15, 20, 25, 30, 32]
    assert [index + 1 for index in ticks(32, 4, 14)] == [1, 5, 10, 15, 20, 25, 32]
    assert [index + 1 for index in ticks(6, 11, 14)] == [1, 6]
    assert [index + 4 for index in ticks(45, 5, 30, before=3)] == [4, 10, 20, 30, 40, 48]


@pytest.mark.parametrize("layers", [1, 6, 32, 80])
@pytest.mark.parametrize("experts", [1, 8, 64])
@pytest.mark.parametrize("width", [120, 200, 320, 700])
def test_the_maps_numbers_do_not_overlap_at_any_width(
    qtbot: QtBot, layers: int, experts: int, width: int
) -> None:
    made = ExpertMap()
    qtbot.addWidget(made)
    status = make_status(residency=ExpertHits.zeros(layers, experts).counts[0, ..., 0].astype(bool))
    made.set_grid(ExpertGrid.of(status, None))
    for height in (made.minimumSizeHint().height(), made.sizeHint().height()):
        made.resize(width, height)
        labels = made.labels()
        assert labels
        boxes = [box for _, box in labels]
        first = made.cell_rect(0, 0)
        assert all(box.right() <= first.left() or box.bottom() <= first.top() for box in boxes)
        for index, box in enumerate(boxes):
            assert 0 <= box.top() < box.bottom() <= height
            assert box.right() <= width
            assert not any(box.intersects(other) for other in boxes[index + 1 :])


@pytest.fixture
def plot(qtbot: QtBot) -> AnswersPlot:
    made = AnswersPlot()
    qtbot.addWidget(made)
    made.resize(240, made.sizeHint().height())
    made.show()
    return made


def test_bars_are_as_high_as_the_answers_were_fast(plot: AnswersPlot) -> None:
    plot.show_rates((10.0, 20.0, 0.0), 2, fixed=False)
    low, high, none = (bar for _, bar in plot.bars())
    assert high.height() == pytest.approx(2 * low.height())
    assert high.height() == pytest.approx(plot.area().height())
    assert none.height() == 1
    assert plot.accessibleDescription() == "Answer 3 of 3: 0.00 tokens per second"
    assert not plot.grab().isNull()


@given(count=st.integers(1, 400), data=st.data())
def test_the_current_answer_is_always_among_the_bars(count: int, data: st.DataObject) -> None:
    current = data.draw(st.integers(0, count - 1))
    plot = AnswersPlot()
    plot.resize(200, 90)
    plot.show_rates((5.0,) * count, current, fixed=True)
    shown = [index for index, _ in plot.bars()]
    assert current in shown
    assert shown == list(range(shown[0], shown[-1] + 1))
    assert all(plot.area().adjusted(-1, -1, 1, 1).contains(bar) for _, bar in plot.bars())
    plot.deleteLater()


def test_answers_are_chosen_with_keys_and_mouse(qtbot: QtBot, plot: AnswersPlot) -> None:
    chosen: list[int | None] = []

    def choose(index: int | None) -> None:
        chosen.append(index)
        plot.show_rates((1.0, 2.0, 3.0), 2 if index is None else index, fixed=index is not None)

    plot.chosen.connect(choose)
    choose(None)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_Left, Qt.Key.Key_End, Qt.Key.Key_Home):
        qtbot.keyClick(plot, key)
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    qtbot.keyClick(plot, Qt.Key.Key_Escape)
    assert chosen == [None, 1, 0, 0, 2, 0, 1, None]
    _, bar = plot.bars()[0]
    for _ in range(2):
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=bar.center().toPoint())
    assert chosen[-2:] == [0, None]


def test_the_pace_is_a_curve_once_there_is_enough_of_it(qtbot: QtBot) -> None:
    plot = PacePlot()
    qtbot.addWidget(plot)
    plot.show_pace(Pace(2, (0.1, 0.2)), 20.0)
    assert plot.isHidden()
    plot.show_pace(Pace(10, (1.0, 2.0, 7.0, 8.0)), 5.0)
    assert not plot.isHidden()
    assert plot.rates == (10.0, 10.0, 2.0, 10.0)
    assert plot.highest == 10.0
    assert plot.words() == (
        "Within the answer: from 2.0 to 10.0 tokens per second, 10.0 at its beginning, 10.0 at its end."
    )
    assert not plot.grab().isNull()


@pytest.mark.parametrize("kind", [AnswersPlot, PacePlot])
def test_a_plot_is_a_chart_to_screen_readers(qtbot: QtBot, kind: type[AnswersPlot | PacePlot]) -> None:
    plot = kind()
    qtbot.addWidget(plot)
    assert QAccessible.queryAccessibleInterface(plot).role() is QAccessible.Role.Chart
