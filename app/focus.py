"""The way of the Tab key through the window: as it is laid out, whatever order its parts were made in.

Qt's own chain follows the order of creation, which is wrong for messages that arrive later.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QScrollArea, QWidget

_ROW = 12  # pixels: widgets whose middles are closer than this stand beside one another


def focus_order(root: QWidget) -> list[QWidget]:
    """Everything visible below `root` that Tab stops at: top to bottom, in a row from left to right."""
    children = [child for child in root.findChildren(QWidget, options=_DIRECT) if _takes_part(child)]
    order: list[QWidget] = []
    for child in sorted(children, key=_place):
        if _is_stop(child):
            order.append(child)
        order += focus_order(child)
    return order


def move_focus(root: QWidget, *, forward: bool) -> bool:
    """Give the focus to the next stop (or the one before), around the ends, and scroll it into view."""
    order = focus_order(root)
    if not order:
        return False
    current = root.focusWidget()
    step = 1 if forward else -1
    index = order.index(current) + step if current in order else (0 if forward else -1)
    target = order[index % len(order)]
    reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
    target.setFocus(reason)
    area = target.parentWidget()
    while area is not None:
        if isinstance(area, QScrollArea) and area is not target:
            area.ensureWidgetVisible(target)
        area = area.parentWidget()
    return True


_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly


def _takes_part(widget: QWidget) -> bool:
    return widget.isVisible() and widget.isEnabled() and not widget.isWindow()


def _is_stop(widget: QWidget) -> bool:
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None


def _place(widget: QWidget) -> tuple[int, int]:
    middle: QPoint = widget.geometry().center()
    return middle.y() // _ROW, widget.x()
