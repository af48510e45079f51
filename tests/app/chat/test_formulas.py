from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QTextCursor
from pytestqt.qtbot import QtBot

from app.chat import formulas as module
from app.chat.body import MessageBody
from app.chat.formula_object import CHARACTER
from app.chat.formulas import FormulaError, FormulaKey, Formulas, draw
from app.chat.prose import ProseArea
from app.theme import theme

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")


@pytest.fixture
def body(qtbot: QtBot) -> Iterator[MessageBody]:
    theme().apply("light")
    made = MessageBody()
    qtbot.addWidget(made)
    made.resize(500, 300)
    made.show()
    yield made
    qtbot.waitUntil(lambda: not module.formulas().busy, timeout=20_000)


def area(body: MessageBody) -> ProseArea:
    found = body.areas[0]
    assert isinstance(found, ProseArea)
    return found


def wait_until_drawn(qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not module.formulas().busy, timeout=20_000)


@pytest.mark.parametrize(
    "tex",
    [
        r"E = mc^2",
        r"\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}",
        r"\sum_{n=1}^{\infty} \frac{1}{n^2}",
        r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        r"f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{otherwise} \end{cases}",
        r"\operatorname{softmax}(x)_i \in \mathbb{R}^n",
        "α + β ≤ γ",
        r"\left( \sum_{i \in C} t_i \right)",
        r"\left\{ \prod_i x_i, \bigcup_{j} S_j \right\}",
        r"\begin{pmatrix} 1 & \begin{bmatrix} 2 \end{bmatrix} \\ 3 & 4 \end{pmatrix}^{-1}",
    ],
)
def test_what_models_write_can_be_drawn(qtbot: QtBot, tex: str) -> None:
    formula = draw(FormulaKey(tex, True, 16, "#000000"))
    assert formula.width > 10
    assert 8 < formula.height < 120
    assert formula.descent >= 0
    image = QImage(200, 100, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    formula.draw(painter, QRectF(0, 0, formula.width, formula.height))
    painter.end()
    assert any(image.pixelColor(x, y).alpha() for x in range(200) for y in range(100))


@pytest.mark.parametrize(
    "tex", [r"\frac{a}", "a_{", r"\nosuchcommand{x}", r"\begin{foo} x", "价格", "🙂", "x" * 3000]
)
def test_what_cannot_be_drawn_is_an_error(qtbot: QtBot, tex: str) -> None:
    with pytest.raises(FormulaError):
        draw(FormulaKey(tex, False, 16, "#000000"))


def test_a_formula_is_drawn_once_for_each_size_and_colour(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FormulaKey] = []
    monkeypatch.setattr(module, "draw", lambda key: asked.append(key) or draw(key))
    shop = Formulas()
    keys = [FormulaKey("x", False, size, color) for size in (12, 16) for color in ("#000000", "#ffffff")]
    for key in keys * 2:
        shop.get(key)
    qtbot.waitUntil(lambda: not shop.busy, timeout=20_000)
    assert asked == keys
    assert all(shop.get(key) is not None for key in keys)


def test_the_library_is_not_loaded_before_the_first_formula() -> None:
    code = "import sys, app.chat.view, app.main; sys.exit('ziamath' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_formulas_appear_when_they_are_drawn_and_wrong_ones_as_source(
    body: MessageBody, qtbot: QtBot
) -> None:
    body.append("A $x^2 + y$ and $\\frac{q}$ end.\n\n$$\\sum_{k=1}^n \\frac{1}{k^7}$$\n\nafter")
    body.finish()
    wait_until_drawn(qtbot)
    assert area(body).toPlainText() == f"A {CHARACTER} and $\\frac{{q}}$ end.\n{CHARACTER}\nafter"
    low = area(body).height()
    again = MessageBody()
    qtbot.addWidget(again)
    again.append("A x and y end.\n\nz\n\nafter")
    again.finish()
    again.resize(500, 300)
    again.show()
    assert low > area(again).height() + 10  # the sum is higher than a line


def test_a_document_is_laid_out_once_for_all_formulas_that_have_come(body: MessageBody, qtbot: QtBot) -> None:
    body.append("|a|b|\n|-|-|\n" + "|$q^{17}$|$q^{17}$|\n" * 30)
    body.finish()
    changes: list[int] = []
    area(body).document().contentsChanged.connect(lambda: changes.append(1))
    wait_until_drawn(qtbot)
    assert len(changes) == 1


def test_a_formula_that_comes_late_moves_no_text_that_is_rendered_later(
    body: MessageBody, qtbot: QtBot
) -> None:
    body.append("Wrong: $\\frac{z}$\n\n")
    body.append("the tail")
    wait_until_drawn(qtbot)
    body.append(" goes on")
    body.finish()
    assert area(body).toPlainText() == "Wrong: $\\frac{z}$\nthe tail goes on"


def test_copying_gives_the_source_of_formulas(body: MessageBody, qtbot: QtBot) -> None:
    body.append("🙂 so $x^2$ is\n\n\\[y\\]")
    body.finish()
    wait_until_drawn(qtbot)
    area(body).selectAll()
    area(body).copy()
    assert QGuiApplication.clipboard().text() == "🙂 so $x^2$ is\n\\[y\\]"
    cursor = area(body).textCursor()
    cursor.setPosition(3)
    cursor.setPosition(5, QTextCursor.MoveMode.KeepAnchor)
    area(body).setTextCursor(cursor)
    area(body).copy()
    assert QGuiApplication.clipboard().text() == "so"


def test_a_wide_formula_is_made_to_fit(body: MessageBody, qtbot: QtBot) -> None:
    body.append("$$" + " + ".join(f"a_{{{n}}}" for n in range(60)) + "$$")
    body.finish()
    wait_until_drawn(qtbot)
    assert area(body).document().size().width() <= area(body).viewport().width() + 1


def test_formulas_take_the_colour_of_the_theme(body: MessageBody, qtbot: QtBot) -> None:
    def colors() -> set[str]:
        image = area(body).grab().toImage()
        points = ((x, y) for x in range(image.width()) for y in range(image.height()))
        return {image.pixelColor(x, y).name() for x, y in points}

    body.append("$\\blacksquare\\blacksquare$")
    body.finish()
    wait_until_drawn(qtbot)
    assert area(body).toPlainText() == CHARACTER
    assert theme().colors.text.name() in colors()
    theme().apply("dark")
    wait_until_drawn(qtbot)
    assert theme().colors.text.name() in colors()
    theme().apply("light")
