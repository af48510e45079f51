"""The settings about looks reach the program, and the zoom has its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication

from app.appearance import ZOOM_STEPS, apply_appearance, next_zoom
from app.settings import SettingsStore, registry
from app.theme import theme
from app.theme_colors import load_colors

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot


@given(st.integers(1, 500))
def test_each_zoom_has_a_step_on_either_side_within_the_ends(percent: int) -> None:
    larger, smaller = next_zoom(percent, 1), next_zoom(percent, -1)
    assert larger > percent or larger == ZOOM_STEPS[-1]
    assert smaller < percent or smaller == ZOOM_STEPS[0]
    assert not any(percent < step < larger or smaller < step < percent for step in ZOOM_STEPS)
    registry.ZOOM.check(larger)
    registry.ZOOM.check(smaller)


@pytest.mark.parametrize("step", ZOOM_STEPS[:-1])
def test_in_and_out_again_is_where_it_was(step: int) -> None:
    assert next_zoom(next_zoom(step, 1), -1) == step


def test_the_settings_decide(qtbot: QtBot) -> None:
    settings = SettingsStore(None)
    settings.update(
        {
            "appearance.theme": "contrast_dark",
            "appearance.font_size": 10,
            "appearance.font_family": "DejaVu Serif",
            "appearance.zoom": 150,
        }
    )
    apply_appearance(settings)
    font = QApplication.font()
    assert (font.family(), font.pointSizeF()) == ("DejaVu Serif", 15)
    assert theme().colors == load_colors("contrast_dark")
    settings.reset()
    apply_appearance(settings)
    theme().apply("light")
    assert QApplication.font().family() != "DejaVu Serif"
