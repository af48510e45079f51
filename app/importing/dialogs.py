"""The question before something is imported twice, and the report of what was imported."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from app.dialogs import MessageDialog
from app.i18n import tr, tr_count
from app.importing.words import Imported, missing_words, taken_words
from app.widgets.labels import TextLabel

_Role = QDialogButtonBox.ButtonRole


def ask_about_known(
    parent: QWidget, known: int, count: int, skip: Callable[[], object], again: Callable[[], object]
) -> MessageDialog:
    """Ask what to do with `known` of `count` chats that are in the list already."""
    if known == count:
        question = tr_count("This chat is here already.", "These {count} chats are here already.", count)
    else:
        question = tr_count(
            "{count} of the {all} chats is here already.",
            "{count} of the {all} chats are here already.",
            known,
            all=count,
        )
    explanation = tr("Importing again adds a second copy. What you have stays as it is in any case.")
    dialog = _dialog(parent, question, [explanation])
    if known < count:
        button = dialog.add_button(tr("Import only the others"), _Role.AcceptRole, default=True)
        button.clicked.connect(lambda: skip())
    words = tr("Import all") if known < count else tr("Import again")
    repeat = dialog.add_button(words, _Role.ActionRole)
    repeat.clicked.connect(dialog.accept)
    repeat.clicked.connect(lambda: again())
    dialog.add_button(tr("Cancel"), _Role.RejectRole, default=known == count)
    dialog.open()
    return dialog


def show_report(parent: QWidget, imported: Imported) -> MessageDialog:
    """Say what was taken and what not; all of it can be copied."""
    taken = taken_words(imported)
    dialog = _dialog(parent, taken, missing_words(imported))
    copy = dialog.add_button(tr("Copy details"), _Role.ActionRole)
    details = "\n\n".join([taken, *missing_words(imported, most=len(imported.refused))])
    copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(details))
    dialog.add_button(tr("Close"), _Role.RejectRole, default=True)
    dialog.open()
    return dialog


def _dialog(parent: QWidget, heading: str, paragraphs: list[str]) -> MessageDialog:
    content = QWidget()
    column = QVBoxLayout(content)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    column.addWidget(TextLabel(heading, content, bold=True))
    for paragraph in paragraphs:
        column.addWidget(TextLabel(paragraph, content))
    dialog = MessageDialog(parent, tr("Import chats"), content)
    dialog.setAccessibleName(heading)
    dialog.setAccessibleDescription(" ".join(paragraphs))
    return dialog
