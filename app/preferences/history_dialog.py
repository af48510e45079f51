"""The calibrations that were ever made: compared two at a time, and an earlier one taken back."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.calibrations import Row, compare, machine_text, moment_text, verdict
from app.dialogs import show_error
from app.i18n import tr, tr_count
from app.paths import profiles_dir
from app.precision import precision_label
from app.widgets.background import Background
from app.widgets.buttons import push_button
from app.widgets.labels import TextLabel, hint
from app.widgets.laid_out import LaidOutDialog
from engine.errors import EngineError
from engine.profile import Profile
from engine.profile_history import History, KeptProfile, history
from engine.profile_store import save_profile


class HistoryDialog(LaidOutDialog):
    """Lists what was kept, the newest first. `taken_back`: another calibration is in use from now on."""

    taken_back = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("Calibrations – Fiddler Chat"))
        self.setAccessibleName(tr("Calibrations"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self._kept: tuple[KeptProfile, ...] = ()
        self._work: Background[History] = Background(tr("Reading the saved calibrations"), self)
        explanation = tr(
            "Every calibration is kept. Choose one to compare it with the one in use, or two to compare them."
        )
        self.state = TextLabel(tr("Looking for the saved calibrations…"), self)
        self.list = _table(
            [tr("Measured on"), tr("Model"), tr("Precision"), tr("Tokens/s"), tr("In use")], self
        )
        self.list.setAccessibleName(tr("Calibrations"))
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.list.itemSelectionChanged.connect(self._show_choice)
        self.verdict = TextLabel(parent=self, bold=True)
        self.figures = _table([tr("Figure"), tr("First"), tr("Second"), tr("Change")], self)
        self.figures.setAccessibleName(tr("Comparison"))
        for place in range(1, self.figures.columnCount()):
            self.figures.header().setSectionResizeMode(place, QHeaderView.ResizeMode.Stretch)
        self.use = push_button(tr("&Use this one again"), self._take_back, self)
        self.use.setToolTip(tr("The one in use now stays in this list. Nothing is measured again."))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        row = QHBoxLayout()
        row.addWidget(self.use)
        row.addWidget(buttons, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 16)
        column.setSpacing(10)
        for widget in (hint(explanation, self), self.state):
            column.addWidget(widget)
        column.addWidget(self.list, 2)
        column.addWidget(self.verdict)
        column.addWidget(self.figures, 3)
        column.addLayout(row)
        unit = self.fontMetrics().height()
        room = self.screen().availableSize()
        self.resize(min(unit * 60, room.width()), min(unit * 42, round(room.height() * 0.9)))
        self.finished.connect(self._work.forget)
        self._show_choice()
        self._work.run(lambda: history(profiles_dir()), self._on_found, self._on_failed)

    @property
    def chosen(self) -> list[KeptProfile]:
        """What is selected, the older one first."""
        rows = sorted(self.list.indexOfTopLevelItem(item) for item in self.list.selectedItems())
        return [self._kept[row] for row in reversed(rows)]

    def _on_found(self, found: History) -> None:
        self._kept = found.kept
        self.list.clear()
        for each in found.kept:
            profile = each.profile
            texts = [
                moment_text(profile.created),
                profile.model_name,
                precision_label(profile.precision),
                f"{profile.measured_tokens_per_second:.1f}",
                tr("in use") if each.in_use else "",
            ]
            item = QTreeWidgetItem(self.list, texts)
            for place in range(len(texts)):
                item.setToolTip(place, machine_text(profile))
        self.state.setText(_counted(found))
        self.state.setVisible(bool(self.state.text()))
        first = self.list.topLevelItem(0)
        if first is not None:
            self.list.setCurrentItem(first)
        self._show_choice()

    def _on_failed(self, error: EngineError) -> None:
        self.state.setText("")
        show_error(self, error)

    def _show_choice(self) -> None:
        chosen = self.chosen
        self.use.setEnabled(len(chosen) == 1 and not chosen[0].in_use)
        pair = self._pair(chosen)
        self.figures.clear()
        if pair is not None:
            first, second = pair
            self.verdict.setText(verdict(first, second))
            self._show_figures(
                compare(first, second), moment_text(first.created), moment_text(second.created)
            )
        elif len(chosen) == 1:
            alone = chosen[0].profile
            self.verdict.setText(_alone(chosen[0]))
            self._show_figures(
                [Row(line.name, line.first, "") for line in compare(alone, alone)], tr("Value")
            )
        else:
            self.verdict.setText(tr("Choose one or two calibrations."))

    def _show_figures(self, lines: list[Row], first: str = "", second: str = "") -> None:
        self.figures.setHeaderLabels([tr("Figure"), first, second, tr("Change") if second else ""])
        for line in lines:
            texts = [line.name, line.first, line.second, line.change]
            item = QTreeWidgetItem(self.figures, texts)
            for place, text in enumerate(texts):
                item.setToolTip(place, text)

    def _pair(self, chosen: Sequence[KeptProfile]) -> tuple[Profile, Profile] | None:
        """What to compare: two chosen ones, or one with that in use for the same model."""
        if len(chosen) == 2:
            return chosen[0].profile, chosen[1].profile
        if len(chosen) == 1 and not chosen[0].in_use:
            one = chosen[0].profile
            used = [each.profile for each in self._kept if each.in_use and each.profile.model == one.model]
            if used:
                other = max(used, key=lambda each: each.precision == one.precision)
                return (one, other) if one.created < other.created else (other, one)
        return None

    @Slot()
    def _take_back(self) -> None:
        [wanted] = self.chosen

        def work() -> History:
            save_profile(wanted.profile)
            return history(profiles_dir())

        self._work.run(work, self._on_taken_back, self._on_failed)

    def _on_taken_back(self, found: History) -> None:
        self._on_found(found)
        self.taken_back.emit()


def _table(header: list[str], parent: QWidget) -> QTreeWidget:
    table = QTreeWidget(parent)
    table.setHeaderLabels(header)
    table.setRootIsDecorated(False)
    table.setUniformRowHeights(True)
    table.setAllColumnsShowFocus(True)
    table.setAlternatingRowColors(True)
    table.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    table.header().setStretchLastSection(True)
    return table


def _counted(found: History) -> str:
    if not found.kept and not found.unreadable:
        return tr("Nothing has been calibrated yet.")
    if found.unreadable:
        return tr_count(
            "{count} calibration cannot be read and is left as it is.",
            "{count} calibrations cannot be read and are left as they are.",
            len(found.unreadable),
        )
    return ""


def _alone(kept: KeptProfile) -> str:
    date = moment_text(kept.profile.created, long=True)
    if kept.in_use:
        return tr("This one is in use. It was measured on {date}.", date=date)
    return tr("Measured on {date}. None of this model is in use.", date=date)
