"""The page about the model: which one, its calibration, and how it is loaded."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QWidget

from app.i18n import tr
from app.precision import activations_consequence, precision_consequence
from app.preferences.calibration_card import CalibrationCard
from app.preferences.history_dialog import HistoryDialog
from app.preferences.page import SettingsPage
from app.settings import SettingsStore, is_as_set, load_options, registry
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.elided import ElidedText
from app.widgets.folding import beside_buttons
from app.widgets.labels import TextLabel, heading
from app.wizard import visit
from app.wizard.dialog import WizardDialog
from app.wizard.offers import Knowledge
from app.worker import EngineWorker
from engine.status import EngineStatus


class ModelPage(SettingsPage):
    """Opens the wizard for another model or another calibration, and offers to load the model again."""

    def __init__(
        self,
        settings: SettingsStore,
        worker: EngineWorker,
        knowledge: Knowledge,
        status: EngineStatus | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(tr("Model and calibration"), settings, parent)
        self._worker, self._knowledge, self._status = worker, knowledge, status
        self.wizard: WizardDialog | None = None
        self.history: HistoryDialog | None = None
        self.content.setSpacing(10)
        self.content.addWidget(self._model_card())
        self.calibration = CalibrationCard(knowledge, partial(load_options, settings), self)
        self.calibration.requested.connect(self._recalibrate)
        self.calibration.history_requested.connect(self._show_history)
        self._other_profile = False  # another calibration is in use than the loaded model has
        self.content.addWidget(self.calibration)
        card = self.calibration
        words = tr("measure benchmark profile history compare undo speed latency")
        self.add_place("calibration", tr("Calibration"), words, card, card.run)
        self.busy = self.add_hint(tr("Available once the model has finished what it is doing."))
        automatic = tr("0 (automatic)")
        self.add_option(registry.POLICY)
        self.add_option(registry.PRECISION)
        self.add_option(registry.EXACT_ACTIVATIONS)
        for option in (
            registry.VRAM_BUDGET,
            registry.THREADS,
            registry.CONTEXT_LENGTH,
            registry.RAM_RESERVE,
        ):
            self.add_option(option, automatic=automatic)
        self.reload_notice = self._reload_notice()
        self.content.insertWidget(1, self.reload_notice)
        self.content.addStretch(1)
        self.follow_settings(self._show_settings)
        worker.idle_changed.connect(self._show_busy)
        worker.loaded.connect(self._on_loaded)
        worker.closed.connect(self._on_closed)
        worker.status_changed.connect(self._on_status)
        self._show_settings()
        self._show_busy()
        self.calibration.look(self._model)

    def close_page(self) -> None:
        """Also give up the search for a profile."""
        super().close_page()
        self.calibration.forget()

    @property
    def _model(self) -> Path | None:
        path = self.settings.get(registry.MODEL_PATH)
        return Path(path) if path else None

    def _model_card(self) -> QFrame:
        card = QFrame(self)
        mark(card, card=True)
        self.model_name = TextLabel(parent=card)
        self.model_path = ElidedText(parent=card, middle=True)
        mark(self.model_path, muted=True)
        self.choose = push_button(tr("Choose another &model…"), self._choose, card)
        self.open_folder = push_button(tr("Open &folder"), self._open_folder, card)
        texts = (heading(tr("Model"), card), self.model_name, self.model_path)
        beside_buttons(card, texts, (self.open_folder, self.choose))
        return card

    def _reload_notice(self) -> QFrame:
        notice = QFrame(self)
        mark(notice, notice="info")
        text = TextLabel(tr("Some changes take effect when the model is loaded again."), notice)
        self.reload = push_button(tr("&Load again now"), self._reload, notice)
        beside_buttons(notice, (text,), (self.reload,))
        return notice

    @Slot()
    def _show_settings(self) -> None:
        """After any change: the model's name, what policy and precision mean, whether to load again."""
        path = self._model
        if self._status is not None:
            self.model_name.setText(self._status.model_name)
        else:
            self.model_name.setText(path.name if path else tr("No model has been chosen yet."))
        self.model_path.setText(str(path) if path else "")
        self.model_path.setVisible(path is not None)
        self.open_folder.setEnabled(path is not None)
        policy = self.settings.get(registry.POLICY)
        self.helps[registry.POLICY.key].setText(_consequence(policy, self._status))
        precision = self.settings.get(registry.PRECISION)
        self.helps[registry.PRECISION.key].setText(precision_consequence(precision))
        exact = self.settings.get(registry.EXACT_ACTIVATIONS)
        self.helps[registry.EXACT_ACTIVATIONS.key].setText(activations_consequence(precision, exact))
        loaded = self._worker.load_options if self._status is not None else None
        changed = loaded is not None and not is_as_set(loaded, self.settings)
        self.reload_notice.setVisible(changed or (loaded is not None and self._other_profile))

    @Slot()
    def _show_busy(self) -> None:
        """The model's own work comes first: nothing here interrupts an answer."""
        idle = self._worker.idle
        self.busy.setVisible(not idle)
        self.choose.setEnabled(idle)
        self.reload.setEnabled(idle)
        self.calibration.run.setEnabled(idle and self._model is not None)

    @Slot(object, object)
    def _on_loaded(self, status: EngineStatus, _: object) -> None:
        self._other_profile = False
        self._on_status(status)
        self.calibration.look(self._model)  # another precision or other threads have another calibration

    @Slot()
    def _on_closed(self) -> None:
        self._on_status(None)

    @Slot(object)
    def _on_status(self, status: EngineStatus | None) -> None:
        self._status = status
        self._show_settings()

    @Slot()
    def _reload(self) -> None:
        if self._model is not None:
            self._worker.load(self._model, load_options(self.settings))

    @Slot()
    def _recalibrate(self) -> None:
        if self._model is not None:
            self._open(
                visit.recalibrate(
                    self._worker, self.settings, self._model, self._status, self, self._knowledge
                )
            )

    @Slot()
    def _show_history(self) -> None:
        dialog = self.history = HistoryDialog(self.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.taken_back.connect(self._on_taken_back)
        dialog.open()

    @Slot()
    def _on_taken_back(self) -> None:
        self._other_profile = True
        self._show_settings()
        self.calibration.look(self._model)

    @Slot()
    def _choose(self) -> None:
        self._open(visit.choose_model(self._worker, self.settings, self._status, self, self._knowledge))

    def _open(self, wizard: WizardDialog) -> None:
        self.wizard = wizard
        wizard.finished.connect(self._on_wizard_finished)
        wizard.open()

    @Slot()
    def _on_wizard_finished(self) -> None:
        self._show_settings()
        self.calibration.look(self._model)
        if self.wizard is not None:
            self.wizard.deleteLater()
            self.wizard = None

    @Slot()
    def _open_folder(self) -> None:
        if self._model is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._model)))


def _consequence(policy: str, status: EngineStatus | None) -> str:
    """One sentence on what a policy means for the user, and whether it matters on this computer."""
    texts = {
        "makespan": tr(
            "Both work on a layer at the same time, each as much as lets it be finished first; one expert "
            "may be shared between them. As calibrated, and corrected while you chat: the fastest."
        ),
        "paper": tr("The method of Fiddler's paper: each expert as a whole where it is finished sooner."),
        "cpu": tr("Keeps the connection to the graphics card free; long prompts are read slowly."),
        "stream": tr("Reads long prompts fast, but answers slowly: every expert is copied for every word."),
    }
    text = texts.get(policy, "")
    if status is not None and not status.has_gpu:
        text += " " + tr("It makes no difference now: without a graphics card everything runs on the CPU.")
    return text
