"""The program's looks: Fusion in our own colours, light, dark or of high contrast, and icons that follow.

    theme().apply("system", zoom=125)      # once the QApplication exists, and when a setting changes
    theme().colors.accent                  # inside paintEvent
    theme().set_icon(button, "copy")       # stays right when the theme changes
    theme().changed.connect(…)

The style sheet (assets/themes/style.qss) reads dynamic properties; set them with `mark`:
`mark(button, primary=True)`, `mark(label, muted=True)`, `mark(label, tone="error")`,
`mark(frame, card=True)`, `mark(frame, notice="warning")`, `mark(frame, surface=True)`.
Headings: `heading(label, 1.4)`.
"""

from __future__ import annotations

import weakref
from functools import cache
from typing import Literal, Protocol, cast, get_args

from PySide6.QtCore import QByteArray, QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QFont, QFontDatabase, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget
from shiboken6 import isValid

from app.paths import asset
from app.theme_colors import Colors, load_colors, palette, style_sheet

ThemeName = Literal["system", "light", "dark", "contrast_light", "contrast_dark"]
THEMES: tuple[str, ...] = get_args(ThemeName)

_CONTRAST = "contrast_"
ICON_SIZES = (16, 20, 24, 32, 40, 48, 64)  # pixels: 16 to 24 at 100% to 250%

_STILL = "\n* { widget-animation-duration: 0; }\n"


class _HasIcon(Protocol):
    def setIcon(self, icon: QIcon, /) -> None: ...


class Theme(QObject):
    """The one theme of the program; get it from `theme()`."""

    font_changing = Signal()  # the font or the zoom is about to change, and everything still has its size
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._choice = "system"
        self._name = ""
        self._icons: dict[tuple[str, str], QIcon] = {}
        self._with_icons: weakref.WeakKeyDictionary[QObject, tuple[str, str]] = weakref.WeakKeyDictionary()
        self._scaled: weakref.WeakKeyDictionary[QWidget, tuple[float, bool]] = weakref.WeakKeyDictionary()
        self._fixed: weakref.WeakSet[QWidget] = weakref.WeakSet()
        self._icon_sizes: weakref.WeakKeyDictionary[QAbstractButton, QSize] = weakref.WeakKeyDictionary()
        self._zoom = 100
        self._system_font: QFont | None = None
        self._styled: QWidget | None = None  # never shown, always with a style sheet
        self._still = False
        self.colors: Colors = load_colors("light")

    @property
    def dark(self) -> bool:
        """Whether the colours shown now are the dark ones."""
        return self.colors.dark

    @property
    def scale(self) -> float:
        """The zoom as a factor, for sizes in pixels that the style sheet does not know."""
        return self._zoom / 100

    def apply(
        self, choice: str = "system", font_size: float = 0, *, family: str = "", zoom: int = 100
    ) -> None:
        """Show the program in this theme, font and zoom.

        `font_size` is in points, `zoom` in percent; 0 and no `family` are the system's.
        """
        app = _application()
        if self._system_font is None:
            self._system_font = app.font()
            app.setStyle("Fusion")
            self._keep_style_cache()
            app.styleHints().colorSchemeChanged.connect(self._follow_system)
            app.styleHints().accessibility().contrastPreferenceChanged.connect(self._follow_system)
        font = QFont(self._system_font)
        if family:
            font.setFamilies([family])
        font.setPointSizeF((font_size or font.pointSizeF()) * zoom / 100)
        resized = font != app.font() or zoom != self._zoom
        self._zoom = zoom
        if resized:
            self.font_changing.emit()
            app.setStyleSheet("")  # with a style sheet, only windows would take over the new font
            app.setFont(font)
        self._choice = choice if choice in THEMES else "system"
        schemes = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
        tone = self._choice.removeprefix(_CONTRAST)
        app.styleHints().setColorScheme(schemes.get(tone, Qt.ColorScheme.Unknown))
        self._show(again=resized)
        if resized:
            QTimer.singleShot(0, self, self._tell)  # when the events about the new font have been handled

    def _keep_style_cache(self) -> None:
        """Keep alive what Qt knows of widgets with a style sheet while the program has none for a moment.

        Without a sheet anywhere, Qt drops its list of styled widgets and with it the connections by which the
        list hears of their end. A widget that was measured but never shown counts as connected for ever: it
        would stay in the next list when it is gone, and the next style sheet ended the program. (Seen with
        Qt 6.11 as a segmentation fault in QApplication::setStyleSheet after a change of the zoom.)
        """
        self._styled = QWidget()
        self._styled.setStyleSheet("* {}")

    def set_still(self, still: bool) -> None:
        """Whether nothing is to move by itself, such as the stripes of a bar without an end."""
        if still != self._still:
            self._still = still
            if self._name:
                self._restyle()

    def icon(self, name: str, color: str = "text") -> QIcon:
        """assets/icons/<name>.svg drawn in a colour of the theme, given by its role."""
        key = (name, color)
        if key not in self._icons:
            self._icons[key] = self._draw(name, color)
        return self._icons[key]

    def set_icon(self, owner: QAbstractButton | QAction, name: str, color: str = "text") -> None:
        """Give a button or an action an icon, now and whenever the theme changes.

        The size that a button has for its icons when it gets the first one is the size at a zoom of 100 %.
        """
        self._with_icons[owner] = (name, color)
        owner.setIcon(self.icon(name, color))
        if isinstance(owner, QAbstractButton):
            if owner not in self._icon_sizes:
                self._icon_sizes[owner] = owner.iconSize()
            owner.setIconSize(self._icon_sizes[owner] * self.scale)

    def scale_font(self, widget: QWidget, factor: float, *, bold: bool = False) -> None:
        """Give a widget `factor` times the program's font size, now and whenever that changes."""
        self._scaled[widget] = (factor, bold)
        font = QFont(_application().font())
        font.setPointSizeF(font.pointSizeF() * factor)
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        widget.setFont(font)

    def use_monospace(self, widget: QWidget) -> None:
        """Give a widget the fixed-width font in the program's size, now and whenever that changes."""
        self._fixed.add(widget)
        widget.setFont(monospace())

    def _tell(self) -> None:
        self.changed.emit()

    def _follow_system(self) -> None:
        if self._choice == "system":
            self._show()

    def _show(self, *, again: bool = False) -> None:
        app = _application()
        name = self._choice if self._choice != "system" else _as_the_desktop()
        if name == self._name:
            if again:
                self._restyle()
            return
        self._name = name
        self.colors = load_colors(name)
        self._icons.clear()
        app.setPalette(palette(self.colors))
        self._restyle()
        for owner, (icon, color) in list(self._with_icons.items()):
            if not isValid(owner):  # Qt has deleted it, Python has not yet
                del self._with_icons[owner]
                continue
            cast(_HasIcon, owner).setIcon(self.icon(icon, color))
        self.changed.emit()

    def _restyle(self) -> None:
        """Set the style sheet; it gives every widget the font back that it had when it was first styled."""
        sheet = style_sheet(self.colors, self.scale)
        _application().setStyleSheet(sheet + _STILL if self._still else sheet)
        for button, size in list(self._icon_sizes.items()):
            if isValid(button):
                button.setIconSize(size * self.scale)
        for widget, (factor, bold) in list(self._scaled.items()):
            if isValid(widget):
                self.scale_font(widget, factor, bold=bold)
        for widget in list(self._fixed):
            if isValid(widget):
                widget.setFont(monospace())

    def _draw(self, name: str, color: str) -> QIcon:
        source = asset(f"icons/{name}.svg").read_bytes()
        icon = QIcon()
        for mode, role in ((QIcon.Mode.Normal, color), (QIcon.Mode.Disabled, "muted")):
            value = getattr(self.colors, role).name().encode()
            renderer = QSvgRenderer(QByteArray(source.replace(b"currentColor", value)))
            for size in ICON_SIZES:
                pixmap = QPixmap(QSize(size, size))
                pixmap.fill(Qt.GlobalColor.transparent)
                painter = QPainter(pixmap)
                renderer.render(painter)
                painter.end()
                icon.addPixmap(pixmap, mode)
        return icon


@cache
def theme() -> Theme:
    """The program's theme."""
    return Theme()


def _as_the_desktop() -> str:
    """The theme that the desktop asks for."""
    hints = _application().styleHints()
    tone = "dark" if hints.colorScheme() is Qt.ColorScheme.Dark else "light"
    high = hints.accessibility().contrastPreference() is Qt.ContrastPreference.HighContrast
    return _CONTRAST + tone if high else tone


def mark(widget: QWidget, **properties: object) -> None:
    """Set dynamic properties that the style sheet reads, and have the style look again."""
    for name, value in properties.items():
        widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # the style has not looked yet; polishing twice would also lose the widget's own font
    widget.style().unpolish(widget)
    widget.style().polish(widget)


def heading(label: QLabel, factor: float = 1.35) -> QLabel:
    """Make a label a heading: `factor` times the program's font, semi-bold."""
    theme().scale_font(label, factor, bold=True)
    return label


def monospace() -> QFont:
    """The system's fixed-width font in the program's size."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(_application().font().pointSizeF() * 0.95)
    return font


def application_icon() -> QIcon:
    """The program's own icon, in all sizes that window managers ask for."""
    icon = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        icon.addFile(str(asset(f"icons/fiddler-chat-{size}.png")), QSize(size, size))
    return icon


def _application() -> QApplication:
    return cast(QApplication, QApplication.instance())
