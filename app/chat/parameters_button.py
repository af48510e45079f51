"""The button above the chat that says how it is answered, and opens the window in which that is changed."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QToolButton, QWidget

from app.chat.session import ChatSession
from app.i18n import tr
from app.presets.dialog import ParametersDialog
from app.presets.words import values_words
from app.theme import theme
from app.widgets.literal import as_label, as_tip

_CHARACTERS = 20  # of the preset's name, at most


class ParametersButton(QToolButton):
    """Shows the preset's name; pressing it opens the parameters."""

    def __init__(self, session: ChatSession, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.dialog: ParametersDialog | None = None
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        theme().set_icon(self, "sliders", "muted")
        self.clicked.connect(self.open_parameters)
        session.parameters.changed.connect(self._show)
        self._show()

    @Slot()
    def open_parameters(self) -> None:
        """Let the user change how this chat is answered."""
        if self.dialog is not None:
            self.dialog.raise_()
            self.dialog.activateWindow()
            return
        parameters, session = self._session.parameters, self._session
        defaults = session.defaults if session.model is not None else None
        dialog = ParametersDialog(parameters.presets, parameters.setup, defaults, self.window())
        self.dialog = dialog
        dialog.applied.connect(parameters.change)
        dialog.finished.connect(self._forget)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()

    def be_short(self, short: bool) -> None:
        """Show the icon alone, where there is room for the chat's title or the preset's name."""
        style = Qt.ToolButtonStyle
        self.setToolButtonStyle(style.ToolButtonIconOnly if short else style.ToolButtonTextBesideIcon)

    @Slot()
    def _forget(self) -> None:
        self.dialog = None

    @Slot()
    def _show(self) -> None:
        parameters = self._session.parameters
        room = self.fontMetrics().averageCharWidth() * _CHARACTERS
        name = self.fontMetrics().elidedText(parameters.label, Qt.TextElideMode.ElideRight, room)
        self.setText(as_label(name))
        values = ", ".join(values_words(parameters.setup.parameters, None))
        tip = tr("Parameters of this chat – {preset}: {values}", preset=parameters.label, values=values)
        self.setToolTip(as_tip(tip))
        self.setAccessibleName(tr("Parameters of this chat: {preset}", preset=parameters.label))
        self.setAccessibleDescription(values)
