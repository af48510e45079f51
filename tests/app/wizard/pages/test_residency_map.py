from __future__ import annotations

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.wizard.pages.residency_map import ResidencyMap


@pytest.mark.parametrize("layers", [1, 2, 6, 32, 80])
def test_the_names_of_the_first_and_the_last_layer_do_not_overlap(qtbot: QtBot, layers: int) -> None:
    made = ResidencyMap()
    qtbot.addWidget(made)
    made.set_residency(np.zeros((layers, 8), dtype=np.bool_), layers, 8)
    for width in (max(40, made.minimumSizeHint().width()), made.sizeHint().width(), 600):
        first, last = made.axis_texts(width)
        metrics = made.fontMetrics()
        assert metrics.horizontalAdvance(first) + metrics.horizontalAdvance(last) < width
        assert first
    assert made.axis_texts(600) == ("layer 1", f"layer {layers}" if layers > 1 else "")
