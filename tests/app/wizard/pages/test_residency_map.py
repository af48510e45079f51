from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage
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


@pytest.mark.parametrize("width", [80, 300, 700])
def test_experts_on_the_graphics_card_are_told_without_colours(qtbot: QtBot, width: int) -> None:
    made = ResidencyMap()
    qtbot.addWidget(made)
    resident = np.zeros((4, 8), dtype=np.bool_)
    resident[1, 2] = resident[3, 7] = True
    made.set_residency(resident, 4, 8)
    made.resize(width, made.sizeHint().height())

    def grey() -> QImage:
        """What is painted, where both places had the same colour."""
        return made.grab().toImage().convertToFormat(QImage.Format.Format_Grayscale8)

    marked = made.marked_cells()
    assert len(marked) == 2
    picture = grey()
    scale = picture.devicePixelRatio()

    def contrast(box: QRectF) -> int:
        """The range of brightness inside a cell: one that is not marked has none."""
        inner = box.adjusted(0.5, 0.5, -0.5, -0.5)
        places = [
            (round(x * scale), round(y * scale))
            for x in np.linspace(inner.left(), inner.right() - 1, 12)
            for y in (inner.center().y(),)
        ]
        values = [picture.pixelColor(x, y).red() for x, y in places]
        return max(values) - min(values)

    plain = made._box(0, 0)
    assert all(contrast(box) > contrast(plain) + 30 for box in marked)
