"""The way of the Tab key through the window: as it is laid out, whatever order its parts were made in.

Qt's own chain follows the order of creation, which is wrong for messages that arrive later.
"""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QRadioButton, QScrollArea, QWidget


def focus_order(root: QWidget) -> list[QWidget]:
    """Everything visible below `root` that Tab stops at: top to bottom, in a row from left to right."""
    children = [child for child in root.findChildren(QWidget, options=_DIRECT) if _takes_part(child)]
    order: list[QWidget] = []
    for row in _rows(children):
        for child in row:
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
    scroll_to(target)
    return True


def scroll_to(widget: QWidget) -> None:
    """Bring a widget into view in all areas that it is in."""
    area = widget.parentWidget()
    while area is not None:
        if isinstance(area, QScrollArea):
            area.ensureWidgetVisible(widget)
        area = area.parentWidget()


_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly


def _takes_part(widget: QWidget) -> bool:
    return widget.isVisible() and widget.isEnabled() and not widget.isWindow()


def _is_stop(widget: QWidget) -> bool:
    if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus or widget.focusProxy() is not None:
        return False
    return not _is_unchosen_radio(widget)


def _is_unchosen_radio(widget: QWidget) -> bool:
    """Of radio buttons, Tab stops at the chosen one, if there is one; arrows lead to the others."""
    if not isinstance(widget, QAbstractButton) or widget.isChecked() or not widget.isCheckable():
        return False
    group = cast(QButtonGroup | None, widget.group())  # the stubs know of no button without one
    if group is not None:
        return group.exclusive() and group.checkedButton() is not None
    parent = widget.parentWidget()
    if not widget.autoExclusive() or parent is None:
        return False
    return any(other.isChecked() for other in parent.findChildren(QRadioButton, options=_DIRECT))


def _rows(widgets: list[QWidget]) -> list[list[QWidget]]:
    """What stands beside one another, from left to right; the rows from top to bottom.

    Beside means that half of the lower of two widgets is level with the row.
    """
    rows: list[list[QWidget]] = []
    top = bottom = 0  # of the last row
    for widget in sorted(widgets, key=QWidget.y):
        first, last = widget.y(), widget.y() + widget.height()
        common = min(bottom, last) - max(top, first)
        if rows and 2 * common >= min(bottom - top, last - first) > 0:
            rows[-1].append(widget)
            bottom = max(bottom, last)
        else:
            rows.append([widget])
            top, bottom = first, last
    return [sorted(row, key=QWidget.x) for row in rows]
