"""Notices of the desktop: over the message bus on Linux, elsewhere (and where that fails) from the tray."""

from __future__ import annotations

import logging
import sys

from PySide6.QtCore import SIGNAL, SLOT, QObject, Signal
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from app.desktop.forward import raise_window
from app.i18n import tr
from app.theme import application_icon
from app.widgets.background import Background
from engine.errors import EngineError

log = logging.getLogger(__name__)

SHOWN_MS = 10_000
_BUS_NAME = "org.freedesktop.Notifications"
_PATH = "/org/freedesktop/Notifications"
_ARGUMENTS = "QString,uint,QString,QString,QString,QStringList,QVariantMap,int"


class TrayNotices(QObject):
    """An icon in the tray that comes with a notice; a click brings the window forward, and it goes."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._icon: QSystemTrayIcon | None = None

    def show(self, text: str) -> None:
        """Show a notice, if this desktop has a tray."""
        if not QSystemTrayIcon.isSystemTrayAvailable():
            return
        if self._icon is None:
            icon = self._icon = QSystemTrayIcon(application_icon(), self)
            icon.setToolTip(tr("Fiddler Chat"))
            icon.activated.connect(self._on_clicked)
            icon.messageClicked.connect(self._on_clicked)
        self._icon.show()
        self._icon.showMessage(tr("Fiddler Chat"), text, application_icon(), SHOWN_MS)

    def _on_clicked(self) -> None:
        assert self._icon is not None
        self._icon.hide()
        raise_window(self._window)


class BusNotices(QObject):
    """Asks the desktop's notification service, in another thread: the service may have to be started first.

    The service knows the program by its desktop entry, and starts it for a click; that brings the window of
    the program that runs forward.
    """

    def __init__(self, otherwise: TrayNotices) -> None:
        super().__init__(otherwise)
        self._otherwise = otherwise
        self._background: Background[bool] = Background(tr("The notice"), self)

    def show(self, text: str) -> None:
        """Show a notice."""

        def done(worked: bool) -> None:
            if not worked:
                self._otherwise.show(text)

        def failed(error: EngineError) -> None:
            log.warning("no notice was shown: %s", error)

        title = tr("Fiddler Chat")
        self._background.run(lambda: notify(title, text), done, failed)


class _Sender(QObject):
    """A signal with the method's very types: a number as Python has it would arrive with another."""

    notify = Signal(str, "uint", str, str, str, "QStringList", "QVariantMap", int)  # type: ignore[arg-type]


def notify(title: str, text: str) -> bool:
    """Call the service and wait for it; whether there is one."""
    from PySide6.QtDBus import QDBusConnection, QDBusInterface

    name = "fiddler-chat-notice"
    connection = QDBusConnection.connectToBus(QDBusConnection.BusType.SessionBus, name)
    service = QDBusInterface(_BUS_NAME, _PATH, _BUS_NAME, connection)
    there = service.isValid()
    if there:
        sender = _Sender()
        QObject.connect(sender, SIGNAL(f"notify({_ARGUMENTS})"), service, SLOT(f"Notify({_ARGUMENTS})"))
        hints = {"desktop-entry": QApplication.desktopFileName(), "category": "transfer.complete"}
        sender.notify.emit(title, 0, "fiddler-chat", title, text, [], hints, SHOWN_MS)
    del service, connection
    QDBusConnection.disconnectFromBus(name)
    return there


def notices_here(window: QWidget) -> TrayNotices | BusNotices:
    """What this computer's system offers."""
    tray = TrayNotices(window)
    return BusNotices(tray) if sys.platform.startswith("linux") else tray
