"""A theme's colours by role, read from assets/themes, and what Qt makes of them. No window needed."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from string import Template

from PySide6.QtGui import QColor, QPalette

from app.paths import asset


@dataclass(frozen=True)
class Colors:
    """The colours of one theme; see the comments in assets/themes/light.toml."""

    base: QColor
    surface: QColor
    raised: QColor
    border: QColor
    edge: QColor
    text: QColor
    muted: QColor
    accent: QColor
    accent_hover: QColor
    on_accent: QColor
    hover: QColor
    selected: QColor
    bubble: QColor
    code: QColor
    code_keyword: QColor
    code_string: QColor
    code_comment: QColor
    code_number: QColor
    code_name: QColor
    code_type: QColor
    code_removed: QColor
    link: QColor
    error: QColor
    error_surface: QColor
    warning: QColor
    warning_surface: QColor
    track: QColor
    gpu: QColor
    streamed: QColor
    split: QColor
    cpu: QColor

    @property
    def dark(self) -> bool:
        """Whether text is lighter than its ground."""
        return self.text.lightnessF() > self.base.lightnessF()

    @property
    def high_contrast(self) -> bool:
        """Whether what is filled also has a line round it."""
        return self.edge.alpha() > 0


_PIXELS = re.compile(r"\b(\d+)px(-1)?")
_LINE = 2  # pixels: up to this it is a line, which stays as thin as it is


def load_colors(name: str) -> Colors:
    """The theme `name`, a file in assets/themes. One that lacks a role is a fault: KeyError."""
    values = tomllib.loads(asset(f"themes/{name}.toml").read_text(encoding="utf-8"))
    return Colors(**{field.name: QColor(values[field.name]) for field in fields(Colors)})


def style_sheet(colors: Colors, scale: float = 1.0) -> str:
    """The program's style sheet in these colours, its sizes multiplied by `scale`."""
    text = asset("themes/style.qss").read_text(encoding="utf-8")
    if colors.high_contrast:
        text += asset("themes/contrast.qss").read_text(encoding="utf-8")
    values = {field.name: _css(getattr(colors, field.name)) for field in fields(Colors)}
    # The style sheet cannot draw in a colour: of a tick or an arrow there is a light and a dark picture.
    pictures = {"check": colors.on_accent, "up": colors.text, "down": colors.text, "clear": colors.muted}
    for picture, color in pictures.items():
        tone = "light" if color.lightnessF() > 0.5 else "dark"
        values[f"{picture}_picture"] = asset(f"themes/{picture}-{tone}.svg").as_posix()
    return Template(
        _PIXELS.sub(lambda match: _scaled(int(match[1]), scale, less=bool(match[2])), text)
    ).substitute(values)


def _css(color: QColor) -> str:
    return color.name() if color.alpha() else "transparent"


def _scaled(pixels: int, scale: float, *, less: bool) -> str:
    """A size of the style sheet at a zoom, rounded down: half of a size stays half of it."""
    size = pixels if pixels <= _LINE else int(pixels * scale)
    return f"{size - less}px"


def palette(colors: Colors) -> QPalette:
    """What Fusion paints everything with that the style sheet does not mention."""
    roles = {
        QPalette.ColorRole.Window: colors.base,
        QPalette.ColorRole.WindowText: colors.text,
        QPalette.ColorRole.Base: colors.raised,
        QPalette.ColorRole.AlternateBase: colors.surface,
        QPalette.ColorRole.Text: colors.text,
        QPalette.ColorRole.PlaceholderText: colors.muted,
        QPalette.ColorRole.Button: colors.raised,
        QPalette.ColorRole.ButtonText: colors.text,
        QPalette.ColorRole.BrightText: colors.error,
        QPalette.ColorRole.ToolTipBase: colors.raised,
        QPalette.ColorRole.ToolTipText: colors.text,
        QPalette.ColorRole.Link: colors.link,
        QPalette.ColorRole.LinkVisited: colors.link,
        QPalette.ColorRole.Highlight: colors.accent,
        QPalette.ColorRole.HighlightedText: colors.on_accent,
        QPalette.ColorRole.Accent: colors.accent,
        QPalette.ColorRole.Light: colors.hover,
        QPalette.ColorRole.Midlight: colors.hover,
        QPalette.ColorRole.Mid: colors.border,
        QPalette.ColorRole.Dark: colors.border,
        QPalette.ColorRole.Shadow: colors.border,
    }
    result = QPalette()
    for role, color in roles.items():
        result.setColor(role, color)
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, role, colors.muted)
    return result


def contrast(first: QColor, second: QColor) -> float:
    """The contrast ratio of WCAG 2, from 1 (equal) to 21 (black on white)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: QColor) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF())
