"""A button that waits for keys after it is pressed. Escape gives up; Tab is never taken, and leads on."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QPushButton, QWidget

from app.i18n import tr
from app.shortcuts.book import portable

_LEADS_ON = (Qt.Key.Key_Tab, Qt.Key.Key_Backtab)


class KeyButton(QPushButton):
    """`pressed_keys` brings what was pressed, in the spelling of the settings."""

    pressed_keys = Signal(str)
    waiting_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._waiting = False
        self.setAutoDefault(False)
        self.clicked.connect(self.wait)
        self._show()

    @property
    def waiting(self) -> bool:
        """Whether the next keys are taken."""
        return self._waiting

    def wait(self) -> None:
        """Take the next keys that are pressed."""
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self._set_waiting(True)

    def event(self, event: QEvent) -> bool:
        """While waiting, keys come here instead of being shortcuts."""
        if self._waiting and isinstance(event, QKeyEvent):
            if event.type() is QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() is QEvent.Type.KeyPress and event.key() not in _LEADS_ON:
                self._take(event)
                return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Wait no longer."""
        self._set_waiting(False)
        super().focusOutEvent(event)

    def _take(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and not event.modifiers():
            self._set_waiting(False)
            return
        keys = portable(event.keyCombination())
        if keys:
            self._set_waiting(False)
            self.pressed_keys.emit(keys)

    def _set_waiting(self, waiting: bool) -> None:
        if waiting != self._waiting:
            self._waiting = waiting
            self._show()
            self.waiting_changed.emit(waiting)

    def _show(self) -> None:
        self.setText(tr("Press the new keys…") if self._waiting else tr("&Change…"))
        self.setAccessibleName(
            tr("Press the new keys, or Escape to give up") if self._waiting else tr("Change the keys")
        )
