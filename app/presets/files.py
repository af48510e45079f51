"""Presets out of the program and in again: asks for a file, and reads or writes it in another thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.dialogs import show_error
from app.export import free_path, suggested_name
from app.i18n import tr, tr_count
from app.paths import documents_dir
from app.presets.errors import PresetFileError
from app.presets.format import MOST_BYTES, from_bytes, to_text
from app.presets.preset import Preset
from app.presets.store import ImportedPresets, PresetStore
from app.widgets.background import Background
from engine.errors import EngineError
from engine.files import open_to_read, write_atomically


class PresetFiles(QObject):
    """`told` says how it ended, for the window to show."""

    told = Signal(str)

    def __init__(self, store: PresetStore, owner: QWidget) -> None:
        super().__init__(owner)
        self._store, self._owner = store, owner
        self._folder = documents_dir()
        self._reading: Background[list[Preset]] = Background(tr("Reading presets"), self)
        self._writing: Background[None] = Background(tr("Saving presets"), self)

    def ask_import(self) -> QFileDialog:
        """Ask for a file and add its presets."""
        dialog = self._dialog(tr("Import presets"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([f"{tr('Presets')} (*.json)", f"{tr('All files')} (*)"])
        return self._opened(dialog, self.import_file)

    def ask_export(self, presets: Sequence[Preset]) -> QFileDialog:
        """Ask for a file and save presets to it."""
        dialog = self._dialog(tr("Export presets"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{tr('Presets')} (*.json)")
        dialog.setDefaultSuffix("json")
        name = presets[0].name if len(presets) == 1 else tr("Fiddler Chat presets")
        dialog.selectFile(free_path(self._folder, suggested_name(name, ".json")).name)
        return self._opened(dialog, partial(self.export_to, presets))

    def import_file(self, path: Path) -> None:
        """Add the presets in a file."""
        self._reading.run(partial(read_presets, path), self._take_in, self._explain)

    def export_to(self, presets: Sequence[Preset], path: Path) -> None:
        """Save presets to a file."""

        def tell(_: None) -> None:
            self.told.emit(tr("Saved as {name}.", name=path.name))

        text = to_text(presets)
        self._writing.run(lambda: write_atomically(path, text), tell, self._explain)

    def _take_in(self, presets: list[Preset]) -> None:
        try:
            done = self._store.take_in(presets)
        except EngineError as error:
            self._explain(error)
            return
        self.told.emit(imported_words(done))

    def _dialog(self, title: str) -> QFileDialog:
        return QFileDialog(self._owner.window(), title, str(self._folder))

    def _opened(self, dialog: QFileDialog, use: Callable[[Path], None]) -> QFileDialog:
        def chosen(file: str) -> None:
            self._folder = Path(file).parent
            use(Path(file))

        dialog.fileSelected.connect(chosen)
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def _explain(self, error: EngineError) -> None:
        show_error(self._owner.window(), error)


def read_presets(path: Path) -> list[Preset]:
    """The presets in a file, of which no more is read than one may have. Raises `PresetFileError`."""
    try:
        with open_to_read(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise PresetFileError(
            tr("“{name}” could not be read.", name=path.name),
            why=tr("The system reported: {error}.", error=error.strerror or error),
            action=tr("Check that the file exists and can be opened. Nothing was changed."),
        ) from error
    return from_bytes(content, path.name)


def imported_words(done: ImportedPresets) -> str:
    """What an import did."""
    parts = []
    if done.added:
        names = ", ".join(f"“{preset.name}”" for preset in done.added[:5])
        more = "…" if len(done.added) > 5 else ""
        text = tr_count(
            "{count} preset was added: {names}",
            "{count} presets were added: {names}",
            len(done.added),
            names=names,
        )
        parts.append(f"{text}{more}.")
    if done.known:
        parts.append(tr_count("{count} was here already.", "{count} were here already.", done.known))
    return " ".join(parts) or tr("The file has no presets.")
