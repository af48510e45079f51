"""The pages of an open wizard, and the way to them, for tests."""

from __future__ import annotations

from collections.abc import Callable

from app.wizard.pages.calibrate import CalibratePage
from app.wizard.pages.computer import ComputerPage
from app.wizard.pages.get import GetPage
from app.wizard.pages.plan import PlanPage
from app.wizard.pages.result import ResultPage
from app.wizard.state import Step
from tests.app.wizard.conftest import Wizard

Open = Callable[..., Wizard]


def computer(wizard: Wizard) -> ComputerPage:
    page = wizard.dialog.pages[Step.COMPUTER]
    assert isinstance(page, ComputerPage)
    return page


def plan(wizard: Wizard) -> PlanPage:
    page = wizard.dialog.pages[Step.PLAN]
    assert isinstance(page, PlanPage)
    return page


def get(wizard: Wizard) -> GetPage:
    page = wizard.dialog.pages[Step.GET]
    assert isinstance(page, GetPage)
    return page


def calibrate(wizard: Wizard) -> CalibratePage:
    page = wizard.dialog.pages[Step.CALIBRATE]
    assert isinstance(page, CalibratePage)
    return page


def result(wizard: Wizard) -> ResultPage:
    page = wizard.dialog.pages[Step.RESULT]
    assert isinstance(page, ResultPage)
    return page


def choose_starter(wizard: Wizard) -> None:
    wizard.click(wizard.dialog.next)
    wizard.wait_step(Step.PLAN)
    wizard.click(plan(wizard).cards[0].radio)
    wizard.wait(wizard.dialog.next.isEnabled)
