"""A dialog through which Tab goes as it is laid out, whatever order its parts were made in."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog

from app.focus import move_focus


class LaidOutDialog(QDialog):
    """See `app.focus`."""

    def focusNextPrevChild(self, next: bool) -> bool:
        """Go on to the part below, or to the right."""
        return move_focus(self, forward=next)
