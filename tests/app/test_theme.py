from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QLabel, QListView, QPushButton
from pytestqt.qtbot import QtBot

import app
from app import theme as theme_module
from app.chat.code_lexer import Role
from app.chat.message import UserMessage
from app.panel.expert_map import heat_color
from app.paths import asset, assets_dir
from app.storage import MessageRow, MessageState
from app.theme import THEMES, application_icon, heading, theme
from app.theme_colors import Colors, contrast, load_colors, style_sheet

pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints")  # from windows of tests before

TEXT_ON = [
    ("text", ("base", "surface", "raised", "hover", "selected", "bubble", "code")),
    ("muted", ("base", "surface", "raised", "hover", "code")),
    *((f"code_{role}", ("code",)) for role in Role),
    ("link", ("base", "surface", "bubble")),
    ("on_accent", ("accent", "accent_hover")),
    ("error", ("base", "surface", "error_surface")),
    ("warning", ("base", "surface", "warning_surface")),
    ("text", ("error_surface", "warning_surface")),
]


GROUNDS = (
    *("base", "surface", "raised", "hover", "selected", "bubble", "code"),
    *("error_surface", "warning_surface"),
)
TEXTS = (
    "text",
    "muted",
    "link",
    "accent",
    "error",
    "warning",
    "on_accent",
    *(f"code_{role}" for role in Role),
)
LINES = ("border", "edge", "accent", "accent_hover", "gpu", "streamed", "split", "cpu", "link", "error")
CONTRAST = [name for name in THEMES if name.startswith("contrast")]


def grounds_of(text: str) -> tuple[str, ...]:
    return ("accent", "accent_hover") if text == "on_accent" else GROUNDS


@pytest.fixture(autouse=True)
def restore_theme(qapp: QApplication) -> Iterator[None]:
    yield
    theme().apply("light")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_is_readable_on_every_ground_it_is_shown_on(name: str) -> None:
    colors = load_colors(name)
    for text, grounds in TEXT_ON:
        for ground in grounds:
            ratio = contrast(getattr(colors, text), getattr(colors, ground))
            assert ratio >= 4.5, f"{text} on {ground}: {ratio:.2f}"


@pytest.mark.parametrize("name", CONTRAST)
def test_high_contrast_is_that_of_wcags_highest_level(name: str) -> None:
    colors = load_colors(name)
    assert colors.high_contrast
    for text in TEXTS:
        for ground in grounds_of(text):
            ratio = contrast(getattr(colors, text), getattr(colors, ground))
            assert ratio >= 7, f"{text} on {ground}: {ratio:.2f}"


@pytest.mark.parametrize("name", CONTRAST)
def test_high_contrast_has_lines_and_marks_that_stand_out(name: str) -> None:
    colors = load_colors(name)
    assert contrast(colors.track, colors.base) >= 3  # the empty part of a bar; experts that nobody chose
    for line in LINES:
        for ground in (*GROUNDS, "track"):
            ratio = contrast(getattr(colors, line), getattr(colors, ground))
            assert ratio >= 3, f"{line} on {ground}: {ratio:.2f}"


def test_every_role_has_a_contrast_that_is_computed() -> None:
    assert {field.name for field in fields(Colors)} == {*TEXTS, *GROUNDS, *LINES, "track"}


@pytest.mark.parametrize("name", CONTRAST)
@pytest.mark.parametrize("heat", [0, 0.25, 0.5, 0.75, 1])
def test_high_contrast_shows_every_cell_of_the_map(qtbot: QtBot, name: str, heat: float) -> None:
    theme().apply(name)
    colors = theme().colors
    outline = max(contrast(line, heat_color(heat)) for line in (colors.text, colors.surface))
    assert outline >= 3  # what marks an expert on the graphics card


@pytest.mark.parametrize("name", ["light", "dark"])
def test_bars_and_focus_stand_out_from_their_ground(name: str) -> None:
    colors = load_colors(name)
    for part in (colors.accent, colors.gpu, colors.split, colors.cpu):
        assert contrast(part, colors.surface) >= 3


def test_contrast_is_that_of_wcag() -> None:
    assert contrast(QColor("black"), QColor("white")) == pytest.approx(21)
    assert contrast(QColor("#777777"), QColor("#ffffff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", THEMES[1:])
def test_the_style_sheet_has_every_colour_filled_in(name: str) -> None:
    sheet = style_sheet(load_colors(name))
    assert "$" not in re.sub(r"/\*.*?\*/", "", sheet)
    assert load_colors(name).accent.name() in sheet
    assert all(Path(path).is_file() for path in re.findall(r'url\("(.*?)"\)', sheet))


def test_zoom_scales_the_sizes_of_the_style_sheet_but_not_its_lines() -> None:
    normal, large = style_sheet(load_colors("light")), style_sheet(load_colors("light"), 1.5)
    assert "padding: 6px 14px" in normal
    assert "padding: 9px 21px" in large
    assert "border: 1px solid" in large
    assert "border: 2px solid" in large


@pytest.mark.parametrize("scale", [0.5, 0.67, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 3])
def test_the_focus_moves_nothing_at_any_zoom(scale: float) -> None:
    for name in ("light", "contrast_dark"):
        sheet = style_sheet(load_colors(name), scale)
        normal = re.search(r"padding: (\d+)px (\d+)px; min-height", sheet)
        focused = re.search(
            r"QPushButton:focus \{ border: 2px solid #\w+; padding: (\d+)px (\d+)px; \}", sheet
        )
        assert normal is not None
        assert focused is not None
        assert [int(each) - 1 for each in normal.groups()] == [int(each) for each in focused.groups()]
        assert "-1;" not in sheet


def test_a_chosen_theme_shows_and_is_told(qtbot: QtBot) -> None:
    theme().apply("light")
    with qtbot.waitSignal(theme().changed):
        theme().apply("dark")
    assert theme().dark
    assert QApplication.palette().window().color() == load_colors("dark").base


def test_icons_follow_the_theme(qtbot: QtBot) -> None:
    theme().apply("light")
    button = QPushButton()
    qtbot.addWidget(button)
    theme().set_icon(button, "copy")
    before = button.icon().pixmap(24).toImage()
    theme().apply("dark")
    assert button.icon().pixmap(24).toImage() != before


def test_every_icon_can_be_drawn_and_is_used() -> None:
    sources = "".join(path.read_text("utf-8") for path in Path(app.__file__).parent.rglob("*.py"))
    icons = {path.stem: path for path in (assets_dir() / "icons").glob("*.svg")}
    for name, icon in icons.items():
        assert QSvgRenderer(str(icon)).isValid(), name
        assert name == "fiddler-chat" or f'"{name}"' in sources, f"{name} is not used"


def test_the_program_has_its_icon_in_every_size(qtbot: QtBot) -> None:
    assert {size.width() for size in application_icon().availableSizes()} == {16, 24, 32, 48, 64, 128, 256}
    assert asset("icons/fiddler-chat.ico").read_bytes()[:4] == b"\x00\x00\x01\x00"


def test_the_font_size_is_the_chosen_one_and_goes_back(qtbot: QtBot) -> None:
    theme().apply("light")
    normal = QApplication.font().pointSizeF()
    theme().apply("light", 19)
    assert QApplication.font().pointSizeF() == 19
    theme().apply("light", 0)
    assert QApplication.font().pointSizeF() == normal


def test_zoom_enlarges_text_and_icons_together_and_goes_back(qtbot: QtBot) -> None:
    theme().apply("light", 10)
    button = QPushButton("Copy")
    qtbot.addWidget(button)
    theme().set_icon(button, "copy")
    size, icon = QApplication.font().pointSizeF(), button.iconSize()
    theme().apply("light", 10, zoom=200)
    assert (QApplication.font().pointSizeF(), button.iconSize()) == (2 * size, 2 * icon)
    theme().apply("light", 10)
    assert (QApplication.font().pointSizeF(), button.iconSize()) == (size, icon)


def test_the_chosen_font_is_used_and_goes_back(qtbot: QtBot) -> None:
    theme().apply("light")
    normal = QApplication.font().families()
    theme().apply("light", family="DejaVu Serif")
    assert QApplication.font().families() == ["DejaVu Serif"]
    theme().apply("light")
    assert QApplication.font().families() == normal


@pytest.mark.qt_log_ignore("propagateSizeHints")
def test_headings_and_messages_grow_with_the_font(qtbot: QtBot) -> None:
    theme().apply("light", 10)
    label = heading(QLabel("Title"), 1.5)
    row = MessageRow(1, 1, "user", "words of a message", MessageState.COMPLETE, datetime.now(UTC))
    message = UserMessage(row)
    for widget in (label, message):
        qtbot.addWidget(widget)
        widget.show()
    message.fit(1000)
    small, width = label.font().pointSizeF(), message._text.width()
    theme().apply("light", 20)
    assert label.font().pointSizeF() == pytest.approx(2 * small)
    qtbot.waitUntil(lambda: message._text.width() > 1.7 * width)
    theme().apply("light", 0)


@pytest.mark.parametrize(
    ("scheme", "contrast_wanted", "expected"),
    [
        (Qt.ColorScheme.Dark, Qt.ContrastPreference.HighContrast, "contrast_dark"),
        (Qt.ColorScheme.Light, Qt.ContrastPreference.HighContrast, "contrast_light"),
        (Qt.ColorScheme.Unknown, Qt.ContrastPreference.NoPreference, "light"),
        (Qt.ColorScheme.Dark, Qt.ContrastPreference.NoPreference, "dark"),
    ],
)
def test_the_desktops_wish_for_contrast_is_followed(
    monkeypatch: pytest.MonkeyPatch,
    scheme: Qt.ColorScheme,
    contrast_wanted: Qt.ContrastPreference,
    expected: str,
) -> None:
    hints = SimpleNamespace(
        colorScheme=lambda: scheme,
        accessibility=lambda: SimpleNamespace(contrastPreference=lambda: contrast_wanted),
    )
    with monkeypatch.context() as patch:
        patch.setattr(theme_module, "_application", lambda: SimpleNamespace(styleHints=lambda: hints))
        assert theme_module._as_the_desktop() == expected


@pytest.mark.parametrize("name", ["light", "dark"])
def test_a_list_in_a_window_of_its_own_has_a_ground(qtbot: QtBot, name: str) -> None:
    theme().apply(name)
    completions = QListView()  # a file dialog shows one below the name that is typed
    qtbot.addWidget(completions)
    completions.setWindowFlag(Qt.WindowType.Popup)
    completions.resize(80, 60)
    image = completions.grab().toImage()
    assert image.pixelColor(40, 30) == QColor(theme().colors.raised)


# Widgets that were measured, not shown, and are gone after a change of the zoom: see Theme._keep_style_cache.
GONE = """
from PySide6.QtWidgets import QApplication, QPushButton, QStyle
from shiboken6 import delete
from app.theme import theme

application = QApplication([])
theme().apply("light")
buttons = [QPushButton() for _ in range(50)]
for zoom in (125, 100):
    for button in buttons:
        button.style().pixelMetric(QStyle.PixelMetric.PM_ButtonMargin, None, button)
    theme().apply("light", zoom=zoom)
for button in buttons:
    delete(button)
theme().apply("dark")
print("alive")
"""


def test_a_new_theme_leaves_alone_what_is_gone() -> None:
    environment = os.environ | {"MALLOC_PERTURB_": "165"}  # glibc then overwrites what is given back
    run = subprocess.run(
        [sys.executable, "-c", GONE], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert run.stdout == "alive\n", f"exit status {run.returncode}: {run.stderr}"
