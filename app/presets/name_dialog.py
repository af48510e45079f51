"""Asks for a preset's name, of a new one or of one that gets another; stays open until it can be used."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.i18n import tr
from app.presets.preset import NAME_CHARACTERS, Preset
from app.presets.store import PresetStore
from app.theme import mark
from app.widgets.announce import announce
from app.widgets.labels import TextLabel
from engine.errors import EngineError

_WIDTH_IN_CHARACTERS = 52


class NameDialog(QDialog):
    """`save` is called with the name; an EngineError that it raises is shown instead of closing."""

    def __init__(
        self, title: str, name: str, save: Callable[[str], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._save = save
        self.setWindowTitle(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.field = QLineEdit(name, self)
        self.field.setMaxLength(NAME_CHARACTERS)
        self.field.setAccessibleName(tr("Name of the preset"))
        self.field.selectAll()
        label = QLabel(tr("&Name of the preset"), self)
        label.setBuddy(self.field)
        self.complaint = TextLabel(parent=self)
        mark(self.complaint, tone="error")
        self.complaint.hide()
        standard = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(standard.Save | standard.Cancel, self)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(8)
        for widget in (label, self.field, self.complaint, self.buttons):
            column.addWidget(widget)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * _WIDTH_IN_CHARACTERS)

    def accept(self) -> None:
        """Use the name, and close if it can be used."""
        try:
            self._save(self.field.text())
        except EngineError as error:
            self.complaint.setText(str(error))
            self.complaint.show()
            announce(self.field, str(error))
            self.resize(self.width(), self.heightForWidth(self.width()))
            self.field.setFocus()
            return
        super().accept()


def ask_name(title: str, save: Callable[[str], object], parent: QWidget) -> NameDialog:
    """Ask for the name of a new preset, which `save` makes."""
    return _opened(NameDialog(title, "", save, parent))


def ask_new_name(store: PresetStore, preset: Preset | None, parent: QWidget) -> NameDialog | None:
    """Give a preset another name; None where there is none that could have one."""
    if preset is None or preset.shipped:
        return None
    return _opened(
        NameDialog(tr("Rename preset"), preset.name, lambda name: store.rename(preset.id, name), parent)
    )


def _opened(dialog: NameDialog) -> NameDialog:
    dialog.open()
    return dialog
