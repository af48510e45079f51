"""The wizard's window: steps at the left, the page, and Back, Next and Cancel below."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtGui import QCloseEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.dialogs import show_error
from app.i18n import tr
from app.theme import mark
from app.widgets.frames import scrolling, separator
from app.wizard.controller import WizardController
from app.wizard.events import Back, Close, Next, Skip
from app.wizard.flow import can_back, can_next, can_skip
from app.wizard.pages.calibrate import CalibratePage
from app.wizard.pages.computer import ComputerPage
from app.wizard.pages.get import GetPage
from app.wizard.pages.page import Page
from app.wizard.pages.plan import PlanPage
from app.wizard.pages.result import ResultPage
from app.wizard.state import Choice, FlowState, Measured, Step, Work
from app.wizard.step_list import StepList, step_name
from engine.errors import EngineError
from engine.starter import starter_dir


class WizardDialog(QDialog):
    """Shows a controller's flow. Accepted when the user goes on to the chat, rejected when it was closed.

    Closing while something runs stops it first; the window stays until it has.
    """

    def __init__(self, controller: WizardController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.controller = controller
        controller.setParent(self)
        self._step: Step | None = None
        self._work: Work | None = None
        self._problem: EngineError | None = None
        self._choice: Choice | None = None
        self._begun = False
        self.pages: dict[Step, Page] = {
            Step.COMPUTER: ComputerPage(),
            Step.PLAN: PlanPage(controller),
            Step.GET: GetPage(starter_dir()),
            Step.CALIBRATE: CalibratePage(),
            Step.RESULT: ResultPage(),
        }
        self.steps = StepList(controller.state.steps, self)
        self.stack = QStackedWidget(self)
        self._areas: dict[Step, QScrollArea] = {}
        for step, page in self.pages.items():
            page.send.connect(controller.send)
            page.content.setContentsMargins(28, 24, 28, 16)
            self._areas[step] = scrolling(page)
            self.stack.addWidget(self._areas[step])
        self.close_button = QPushButton(tr("Close"), self)
        self.close_button.setAutoDefault(False)
        self.close_button.clicked.connect(self.reject)
        self.skip = QPushButton(tr("&Skip calibration"), self)
        self.skip.setAutoDefault(False)
        self.skip.setToolTip(tr("Goes on with estimates. You can calibrate later in the settings."))
        self.skip.clicked.connect(lambda: controller.send(Skip()))
        self.back = QPushButton(tr("&Back"), self)
        self.back.setAutoDefault(False)
        self.back.clicked.connect(lambda: controller.send(Back()))
        self.next = QPushButton(tr("&Next"), self)
        self.next.setDefault(True)
        mark(self.next, primary=True)
        self.next.clicked.connect(lambda: controller.send(Next()))
        self._lay_out()
        self.setWindowFlag(Qt.WindowType.WindowContextHelpButtonHint, False)
        self.setModal(True)
        unit = self.fontMetrics().height()
        room = self.screen().availableSize()
        self.setMinimumSize(min(unit * 46, room.width()), min(unit * 22, room.height()))
        self.resize(min(unit * 64, room.width()), min(unit * 44, round(room.height() * 0.92)))
        controller.changed.connect(self._show_state)
        controller.trouble.connect(lambda error: show_error(self, error))
        self._show_state()

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setContentsMargins(28, 12, 28, 16)
        buttons.setSpacing(10)
        buttons.addWidget(self.close_button)
        buttons.addStretch(1)
        buttons.addWidget(self.skip)
        buttons.addWidget(self.back)
        buttons.addWidget(self.next)
        right = QVBoxLayout()
        right.setSpacing(0)
        right.addWidget(self.stack, 1)
        right.addWidget(separator(self))
        right.addLayout(buttons)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.steps)
        layout.addLayout(right, 1)

    def showEvent(self, event: QShowEvent) -> None:
        """Begin when the window is there to show it."""
        super().showEvent(event)
        if not event.spontaneous() and self._step is not None:
            QTimer.singleShot(0, self, self._begin)

    def reject(self) -> None:
        """Escape, Close and the window's close button: stop what runs, then close."""
        self.controller.send(Close())

    def closeEvent(self, event: QCloseEvent) -> None:
        """As `reject`; the window stays while something is being stopped."""
        if not (self.controller.state.closed or self.controller.state.finished):
            event.ignore()
            self.reject()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.controller.begin()

    @Slot()
    def _show_state(self) -> None:
        state = self.controller.state
        if state.finished or state.closed:
            self.done(QDialog.DialogCode.Accepted if state.finished else QDialog.DialogCode.Rejected)
            return
        self.pages[state.step].show_state(state)
        waited = self.focusWidget() is self.close_button and not self.next.isEnabled()
        self._show_buttons(state)
        if state.step is not self._step:
            self._show_step(state)
            self._focus()
        elif (state.work is None) is not (self._work is None) or self.focusWidget() is None or waited:
            self._focus()  # what had the focus may be gone, and something else is to be done next
        if state.problem is not self._problem or state.choice != self._choice:
            QTimer.singleShot(0, self, self._reveal)
        self._work, self._problem, self._choice = state.work, state.problem, state.choice

    def _reveal(self) -> None:
        """Scroll to what has just appeared, once it has its place: it may be below a small window's edge."""
        step = self.controller.state.step
        part = self.pages[step].news()
        if part is not None and part.isVisible():
            self._areas[step].ensureWidgetVisible(part, 0, 24)

    def _show_step(self, state: FlowState) -> None:
        self._step = step = state.step
        self.steps.set_step(step, (Step.CALIBRATE,) if state.measured is Measured.SKIPPED else ())
        self.stack.setCurrentWidget(self._areas[step])
        self._areas[step].verticalScrollBar().setValue(0)
        self.setWindowTitle(tr("{step} – Fiddler Chat", step=step_name(step)))
        self.setAccessibleName(step_name(step))

    def _show_buttons(self, state: FlowState) -> None:
        last = state.step is state.steps[-1]
        fresh = Step.PLAN in state.steps
        self.next.setText((tr("&Start chatting") if fresh else tr("&Done")) if last else tr("&Next"))
        self.next.setEnabled(can_next(state))
        self.back.setVisible(state.step is not state.steps[0])
        self.back.setEnabled(can_back(state))
        self.skip.setVisible(state.step is Step.CALIBRATE and fresh and state.measured is not Measured.YES)
        self.skip.setEnabled(can_skip(state))
        self.close_button.setEnabled(state.after is None)

    def _focus(self) -> None:
        """The keyboard's place: what the page starts with, Next where it can be pressed, or Close."""
        page = self.pages[self.controller.state.step].first_focus()
        following = self.next if self.next.isEnabled() else None
        first = (page, following) if self._step is Step.PLAN else (following, page)
        target = next((widget for widget in first if widget is not None), self.close_button)
        target.setFocus(Qt.FocusReason.OtherFocusReason)
