from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor, QHelpEvent
from PySide6.QtWidgets import QApplication, QLabel, QToolTip
from pytestqt.qtbot import QtBot

from app.panel.expert_map import ExpertMap
from app.panel.figures import ExpertGrid
from app.panel.machine import MachineReading, Use
from app.panel.panel import LivePanel
from app.theme import theme
from engine.events import ExpertHits, Phase
from tests.app.fakes import make_status
from tests.app.figures import stats_after

GIB = 2**30
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


class Machine:
    """A machine whose readings are counted."""

    def __init__(self) -> None:
        self.reads: list[int | None] = []

    def __call__(self, gpu_index: int | None) -> MachineReading:
        self.reads.append(gpu_index)
        return MachineReading(Use(16 * GIB, 6 * GIB, 2 * GIB), 0.75, 0.5)


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def panel(qtbot: QtBot, machine: Machine) -> LivePanel:
    theme().apply("light")
    made = LivePanel(read=machine)
    qtbot.addWidget(made)
    made.resize(320, 800)
    return made


def test_the_panel_shows_the_engines_figures(qtbot: QtBot, panel: LivePanel) -> None:
    panel.show()
    panel.show_status(make_status())
    stats = stats_after(20, gpu=12)
    panel.show_stats(stats)
    assert panel.speed.now.text() == "42.0"
    assert panel.speed.rows["average"].text() == "40.0"
    total = int(stats.hits.counts.sum())
    gpu = 12 * 6
    assert panel.shares.texts[0] == f"{round(100 * gpu / total)}%  ({gpu:,})"
    assert panel.shares.texts[1] == f"{round(100 * (total - gpu) / total)}%  ({total - gpu:,})"
    panel.show_status(make_status(has_gpu=True))
    assert [text.split()[0] for text in panel.shares.texts].count("0%") == 2
    panel.show_status(make_status())
    assert int(panel.experts.map.grid.uses.sum()) == total
    assert panel.speed.context.text == "32 of 512 tokens"
    qtbot.waitUntil(lambda: panel.machine.ram.text == "6.0 GiB of 16.0 GiB")
    assert "No graphics card is in use." in panel.machine.note.text()


def test_the_panel_says_how_well_layers_are_foretold(qtbot: QtBot, panel: LivePanel) -> None:
    panel.show()
    panel.show_status(make_status())
    panel.show_stats(stats_after(5))
    assert not panel.forecast.planned.isVisible()
    panel.show_stats(replace(stats_after(5), prediction_error=0.25, refits=1))
    qtbot.waitUntil(panel.forecast.planned.isVisible)
    assert (panel.forecast.planned.text, panel.forecast.real.text) == ("125%", "100%")
    assert (
        "25% longer than they do. The measured speeds were corrected 1 time."
        in panel.forecast.sentence.text()
    )


def test_a_hidden_panel_does_nothing_and_catches_up_when_shown(
    qtbot: QtBot, panel: LivePanel, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    grids: list[ExpertGrid] = []
    monkeypatch.setattr(panel.experts.map, "set_grid", grids.append)
    panel.show_status(make_status())
    for tokens in range(1, 30):
        panel.show_stats(stats_after(tokens))
    assert grids == []
    assert machine.reads == []
    panel.show()
    assert len(grids) == 1
    assert panel.speed.rows["answer"].text().startswith("29\u00a0tokens")
    qtbot.waitUntil(lambda: panel.machine.cpu.text == "75%")
    assert machine.reads == [None]
    panel.hide()
    panel.show_stats(stats_after(30))
    assert len(grids) == 1
    assert not panel._sampler.running


def test_another_model_clears_the_figures_of_the_first(panel: LivePanel) -> None:
    panel.show()
    panel.show_status(make_status())
    panel.show_stats(stats_after(5))
    panel.show_status(make_status(model_name="Other"))
    assert panel.speed.now.text() == "–"
    panel.show_status(None)
    assert panel.experts.map.grid.layers == 0


@pytest.fixture
def expert_map(qtbot: QtBot) -> ExpertMap:
    theme().apply("light")
    made = ExpertMap()
    qtbot.addWidget(made)
    made.resize(320, 132)
    residency = np.zeros((6, 8), dtype=np.bool_)
    residency[0, 1] = True
    hits = ExpertHits.zeros(6, 8)
    hits.counts[Phase.DECODE, :, 0, 2] = 10
    hits.counts[Phase.DECODE, :, 2, 2] = 5
    made.set_grid(ExpertGrid.of(make_status(residency=residency), hits))
    made.show()
    return made


def lightness(expert_map: ExpertMap, layer: int, expert: int) -> float:
    image = expert_map.grab().toImage()
    rect = expert_map.cell_rect(layer, expert)
    place = (rect.topLeft() + QPointF(5, 5)) * image.devicePixelRatio()
    return QColor(image.pixel(place.toPoint())).lightnessF()


def test_the_panel_tells_the_precision(panel: LivePanel) -> None:
    panel.show()
    panel.show_status(make_status(precision="int4"))
    assert "Precision: 4 bits." in panel.experts.caption.text()
    panel.show_status(make_status())
    assert "Precision: bf16." in panel.experts.caption.text()


def test_use_is_shown_by_lightness_and_residency_by_an_outline(expert_map: ExpertMap) -> None:
    unused, used, most = (lightness(expert_map, 3, expert) for expert in (3, 2, 0))
    assert unused > used > most
    image = expert_map.grab().toImage()
    edges = [expert_map.cell_rect(0, expert).topLeft() + QPointF(1, 9) for expert in (1, 3)]
    resident, other = (QColor(image.pixel(edge.toPoint())).lightnessF() for edge in edges)
    assert other - resident > 0.3


def test_every_place_of_the_map_belongs_to_the_cell_that_is_painted_there(expert_map: ExpertMap) -> None:
    for layer in range(6):
        for expert in range(8):
            assert expert_map.cell_at(expert_map.cell_rect(layer, expert).center()) == (layer, expert)
    assert expert_map.cell_at(QPointF(-1, 5)) is None


def test_the_map_can_be_read_with_the_keyboard(qtbot: QtBot, expert_map: ExpertMap) -> None:
    told: list[str] = []
    expert_map.described.connect(told.append)
    expert_map.setFocus()
    qtbot.keyClick(expert_map, Qt.Key.Key_Right)
    qtbot.keyClick(expert_map, Qt.Key.Key_Right)
    qtbot.keyClick(expert_map, Qt.Key.Key_Down)
    assert told[-1].startswith("Layer 2, expert 3: in main memory, chosen 5 times in this chat")
    assert expert_map.accessibleDescription() == told[-1]
    for _ in range(20):
        qtbot.keyClick(expert_map, Qt.Key.Key_Left)
    assert told[-1].startswith("Layer 2, expert 1")
    expert_map.clearFocus()
    assert expert_map.accessibleDescription().startswith("6 layers of 8 experts.")


@pytest.mark.parametrize(
    ("keys", "cell"),
    [
        ([Qt.Key.Key_End], "Layer 1, expert 8"),
        ([Qt.Key.Key_PageDown], "Layer 6, expert 1"),
        ([Qt.Key.Key_PageDown, Qt.Key.Key_End, Qt.Key.Key_Home, Qt.Key.Key_Up], "Layer 5, expert 1"),
        ([Qt.Key.Key_End, Qt.Key.Key_PageDown, Qt.Key.Key_PageUp], "Layer 1, expert 8"),
    ],
)
def test_far_cells_are_one_key_away(
    qtbot: QtBot, expert_map: ExpertMap, keys: list[Qt.Key], cell: str
) -> None:
    expert_map.setFocus()
    for key in keys:
        qtbot.keyClick(expert_map, key)
    assert expert_map.accessibleDescription().startswith(f"{cell}: ")


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_every_cell_has_a_tool_tip(qtbot: QtBot, expert_map: ExpertMap) -> None:
    place = expert_map.cell_rect(4, 2).center().toPoint()
    QApplication.sendEvent(expert_map, QHelpEvent(QEvent.Type.ToolTip, place, expert_map.mapToGlobal(place)))
    qtbot.waitUntil(lambda: QToolTip.text().startswith("Layer 5, expert 3: in main memory, chosen 5 times"))
    QToolTip.hideText()


def test_the_key_tells_of_graphics_memory_where_there_is_a_card(panel: LivePanel) -> None:
    panel.show()
    for has_gpu in (True, False):
        panel.show_status(make_status(has_gpu=has_gpu))
        words = [label.text() for label in panel.experts.legend.findChildren(QLabel) if label.isVisible()]
        assert ("Outlined: in GPU memory" in words) is has_gpu
        assert any(text.startswith("From never to most often") for text in words)
