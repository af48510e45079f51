"""Page 2, "Model and plan": which model, what it needs here, how fast it will be, before anything is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QFileDialog,
    QVBoxLayout,
    QWidget,
)

from app.i18n import tr
from app.precision import precision_consequence, precision_label
from app.theme import mark
from app.widgets.buttons import push_button
from app.widgets.labels import TextLabel, hint
from app.widgets.problem import ProblemBox
from app.wizard.catalog import ENTRIES
from app.wizard.controller import WizardController
from app.wizard.events import Choose, Force
from app.wizard.offers import Offer
from app.wizard.pages.model_card import ModelCard
from app.wizard.pages.needs_view import NeedsView
from app.wizard.pages.page import Page
from app.wizard.state import Choice, FlowState, Kind
from engine.errors import EngineError


class PlanPage(Page):
    """Cards to choose from, and below them the plan for the chosen one."""

    def __init__(self, controller: WizardController, parent: QWidget | None = None) -> None:
        super().__init__(
            tr("Model and plan"),
            tr("Choose a model. You see what it needs and how fast it will be before anything is done."),
            parent,
        )
        self._controller = controller
        self._folder: Path | None = None
        self._group = QButtonGroup(self)
        self.cards = [ModelCard(tr(entry.name), tr(entry.description), self) for entry in ENTRIES]
        self.folder_card = ModelCard(
            tr("Another model on this computer"),
            tr("Any model of the Mixtral family in bf16 that you have already, in the safetensors format."),
            self,
        )
        self.open = push_button(tr("&Open a folder…"), self._open_folder, self)
        self.folder_card.add_button(self.open)
        self.problem = ProblemBox(self)
        self.content.addWidget(self.problem)
        for card in (*self.cards, self.folder_card):
            self._group.addButton(card.radio)
            self.content.addWidget(card)
            card.radio.clicked.connect(self._on_clicked)
        self.plan = QWidget(self)
        self.plan.setAccessibleName(tr("The plan for this computer"))
        column = QVBoxLayout(self.plan)
        column.setContentsMargins(0, 6, 0, 4)
        column.setSpacing(8)
        self.placement = hint(parent=self.plan)
        self.needs = NeedsView(self.plan)
        self.advice = TextLabel(parent=self.plan)
        mark(self.advice, tone="warning")
        self.precision = hint(parent=self.plan)
        self.other_precision = push_button("", self._use_other_precision, self.plan)
        self.force = QCheckBox(tr("&Do it anyway: it may be very slow, or fail"), self.plan)
        self.force.toggled.connect(lambda on: self.send.emit(Force(on)))
        self.basis = hint(parent=self.plan)
        for widget in (
            self.placement,
            self.needs,
            self.advice,
            self.precision,
            self.other_precision,
            self.force,
            self.basis,
        ):
            column.addWidget(widget)
        column.setAlignment(self.other_precision, Qt.AlignmentFlag.AlignLeft)
        column.setAlignment(self.force, Qt.AlignmentFlag.AlignLeft)  # so that only its words are clickable
        self.content.addStretch(1)

    def news(self) -> QWidget | None:
        """The problem, or the plan of the model that was just chosen."""
        return self.problem if self.problem.isVisible() else self.plan

    def show_state(self, state: FlowState) -> None:
        """Show the verdicts, the choice, and its plan."""
        offers = self._controller.offers
        for card, choice in zip(self.cards, self._controller.catalogue, strict=True):
            _show_verdict(card, offers.get(choice))
            self._set_checked(card, state.choice == choice)
        chosen = state.choice
        if chosen is not None and chosen.kind is Kind.FOLDER:
            self._folder = chosen.folder
        self._set_checked(self.folder_card, chosen is not None and chosen.kind is Kind.FOLDER)
        if self._folder is not None:
            self.folder_card.description.setText(str(self._folder))
            _show_verdict(self.folder_card, offers.get(self._folder_choice()))
        offer = offers.get(chosen) if chosen is not None else None
        problem = offer if isinstance(offer, EngineError) else None
        self.problem.show_problem(problem or (state.problem if offer is None else None))
        self.plan.setVisible(isinstance(offer, Offer))
        if isinstance(offer, Offer):
            cards = (*self.cards, self.folder_card)  # settings edited by hand may name a model without a card
            card = next((card for card in cards if card.radio.isChecked()), self.folder_card)
            card.take_plan(self.plan)
            self._show_plan(offer, state.force)

    def _show_plan(self, offer: Offer, force: bool) -> None:
        plan = offer.plan
        self.placement.setText(f"{plan.placement_text()} {plan.policy_text()}".strip())
        basis = _sentence(tr("Speed: {basis}", basis=plan.basis))
        self.basis.setText(" ".join((basis, *plan.assumptions, *plan.notes)))
        self.needs.set_needs(offer.needs)
        advice = list(dict.fromkeys(line for need in offer.needs if not need.fits for line in need.advice))
        self.advice.setText(tr("What would help: {advice}", advice=" ".join(advice)))
        self.advice.setVisible(offer.short and bool(advice))
        self._show_precision(offer)
        self.force.setVisible(offer.short)
        self.force.blockSignals(True)
        self.force.setChecked(force)
        self.force.blockSignals(False)

    def _show_precision(self, offer: Offer) -> None:
        """What the experts are held in, if not as in the files, and the precision to offer instead."""
        used, other = offer.plan.precision, offer.other_precision
        lines = []
        if used != "bf16":
            costs = precision_consequence(used)
            lines.append(tr("Experts in {precision}. {costs}", precision=precision_label(used), costs=costs))
        if other:
            label, costs = precision_label(other), precision_consequence(other)
            lines.append(
                tr("There is room for experts in {precision}. {costs}", precision=label, costs=costs)
            )
            self.other_precision.setText(tr("&Use {precision}", precision=label))
        self.precision.setText("\n".join(lines))
        self.precision.setVisible(bool(lines))
        self.other_precision.setVisible(bool(other))

    @Slot()
    def _use_other_precision(self) -> None:
        chosen = self._controller.state.choice
        offer = self._controller.offers.get(chosen) if chosen is not None else None
        if chosen is not None and isinstance(offer, Offer) and offer.other_precision:
            self.send.emit(Choose(replace(chosen, precision=offer.other_precision)))

    def first_focus(self) -> QWidget | None:
        """The chosen model, so that the arrow keys choose another."""
        cards = (*self.cards, self.folder_card)
        return next((card.radio for card in cards if card.radio.isChecked()), self.cards[0].radio)

    def _set_checked(self, card: ModelCard, on: bool) -> None:
        if card.radio.isChecked() != on:
            self._group.setExclusive(False)
            card.radio.setChecked(on)
            self._group.setExclusive(True)
        mark_chosen(card, on)

    @Slot()
    def _on_clicked(self) -> None:
        catalogue: Sequence[Choice] = self._controller.catalogue
        for card, choice in zip(self.cards, catalogue, strict=True):
            if card.radio is self.sender():
                self.send.emit(Choose(choice))
                return
        if self._folder is None:
            self.show_state(self._controller.state)  # nothing is chosen before there is a folder
            self._open_folder()
        else:
            self.send.emit(Choose(self._folder_choice()))

    def _folder_choice(self) -> Choice:
        """The folder's model, in the precision that was chosen for it."""
        chosen = self._controller.state.choice
        if chosen is not None and chosen.kind is Kind.FOLDER:
            return chosen
        return Choice(Kind.FOLDER, folder=self._folder)

    @Slot()
    def _open_folder(self) -> None:
        start = self._folder or self._controller.models_folder
        chosen = QFileDialog.getExistingDirectory(self, tr("Open a model's folder"), str(start))
        if chosen:
            self._folder = Path(chosen)
            self.send.emit(Choose(Choice(Kind.FOLDER, folder=self._folder)))


def mark_chosen(card: ModelCard, on: bool) -> None:
    """Make the chosen card stand out, in the theme's colours."""
    if card.property("chosen") is not on:
        mark(card, chosen=on)


def _show_verdict(card: ModelCard, offer: Offer | EngineError | None) -> None:
    if offer is None:
        card.set_verdict(tr("Working out the plan…"), good=True)
    elif isinstance(offer, EngineError):
        card.set_verdict(offer.what, good=False)
    elif offer.short:
        text = tr("Does not fit this computer as it is. If it did: {speed}.", speed=offer.plan.speed_text())
        card.set_verdict(text, good=False)
    else:
        card.set_verdict(tr("Fits this computer: {speed}.", speed=offer.plan.speed_text()), good=True)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") or not text else f"{text}."
