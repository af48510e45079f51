"""Starts the desktop program: arguments, log, faults, then the window. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QLibraryInfo, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from app.appearance import apply_appearance, apply_language
from app.backup.errors import BackupError
from app.backup.swapping import is_asked, swap_if_asked
from app.desktop.forward import come_forward
from app.desktop.habits import Habits
from app.desktop.handover import Handover, absolute
from app.desktop.instance import SingleInstance, Start
from app.desktop.last_run import RunMarker
from app.desktop.restart import start_again
from app.dialogs import show_error
from app.engine_factory import EngineFactory
from app.faults import FaultReporter, stop_on_signals, tell_of_failed_start
from app.garbage import GarbageCollector
from app.i18n import tr
from app.logs.files import crash_log_path, record_crashes, start_logging
from app.paths import data_dir, database_path, ensure_dir, log_path, settings_path
from app.real_engine import RealEngine
from app.settings import SettingsStore
from app.setup_flow import SetupFlow
from app.storage.errors import Notice
from app.storage.thread import StorageThread
from app.theme import application_icon
from app.window import MainWindow
from app.worker import EngineWorker
from engine.errors import EngineError
from engine.paths import DATA_DIR_VARIABLE
from engine.version import version

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None, factory: EngineFactory | None = None) -> int:
    """Run the program until its window is closed; `factory` stands in for the real engine."""
    options = _parser().parse_args(arguments)
    if options.data_dir:
        os.environ[DATA_DIR_VARIABLE] = os.path.abspath(os.path.expanduser(options.data_dir))
    choose_input_method()
    app = _application()
    instance = SingleInstance(_folder())
    handover = Handover(absolute(options.files), os.environ.pop("XDG_ACTIVATION_TOKEN", ""))
    start = instance.begin(handover)
    if start is not Start.FIRST:
        return 0 if start is Start.HANDED_OVER else _say_unanswered(app)
    start_logging()
    if is_asked(data_dir()):
        apply_language(SettingsStore(settings_path()))  # the restored settings may want another one
    try:
        restored = swap_if_asked(data_dir())
    except BackupError as error:
        code = _say(app, error)
        instance.end()
        return code
    marker = RunMarker(log_path().parent, crash_log_path())
    marker.begin()
    ended = _run(app, instance, handover.files, marker, restored, factory)
    marker.end()
    instance.end()  # from here on the next one may begin
    if ended.again:
        start_again(options.files)
    if ended.hangs:
        logging.shutdown()
        os._exit(ended.code)
    return ended.code


class _Ended(NamedTuple):
    """How the window's run ended."""

    code: int
    hangs: bool  # a thread does; the process must not wait for it
    again: bool  # the user wants to begin anew


def _run(
    app: QApplication,
    instance: SingleInstance,
    files: Sequence[Path],
    marker: RunMarker,
    restored: Notice | None,
    factory: EngineFactory | None,
) -> _Ended:
    """Run the window; this program is the only one with its data folder."""
    sys.excepthook = tell_of_failed_start  # until there is a window
    record_crashes()
    log.info("Fiddler Chat %s starts", version())
    settings = SettingsStore(settings_path())
    apply_language(settings)
    apply_appearance(settings)
    storage = StorageThread(database_path())
    worker = EngineWorker(factory or RealEngine())
    window = MainWindow(storage, worker, settings)
    reporter = FaultReporter(window)
    reporter.install()
    reporter.restart_requested.connect(window.close)
    reporter.restart_requested.connect(app.quit)  # also if the fault keeps the window from closing
    stop_on_signals(window.close, window)
    SetupFlow(window, worker, settings)
    habits = Habits(window, worker, settings)
    garbage = GarbageCollector(lambda: worker.idle, window)
    garbage.start()
    window.closed.connect(app.quit)  # also where a dialog is still open
    window.closed.connect(instance.stop_listening)
    window.closed.connect(marker.end)  # all is saved: at a log-out the system may not wait for the rest
    instance.asked.connect(lambda asked: come_forward(window, asked))
    window.show()
    QTimer.singleShot(0, window, window.begin)
    if marker.before is not None:
        window.show_bad_ending(marker.before)
    if restored is not None:
        window.show_notice(restored)
    if files:
        QTimer.singleShot(0, window, lambda: window.importing.import_files(files))
    code = app.exec()
    ended = worker.shutdown(0)
    storage.close()
    garbage.stop()
    habits.end()
    reporter.uninstall()
    log.info("Fiddler Chat ends")
    # The engine's thread may hang in something that cannot be interrupted. All is saved.
    return _Ended(code, hangs=not ended, again=reporter.restart_wanted or window.restart_wanted)


def choose_input_method(environment: dict[str, str] | None = None) -> None:
    """Where the desktop wants fcitx but this Qt has no plugin for it, use ibus' protocol: fcitx speaks it."""
    variables = os.environ if environment is None else environment
    if variables.get("QT_IM_MODULE", "").startswith("fcitx"):
        plugins = QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)
        folder = os.path.join(plugins, "platforminputcontexts")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        if not any("fcitx" in name for name in names):
            variables["QT_IM_MODULE"] = "ibus"


def _application() -> QApplication:
    QGuiApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    app = QApplication(sys.argv[:1])
    app.setApplicationName("fiddler-chat")  # no display name: Qt would add it to the titles in its own way
    app.setApplicationVersion(version())
    app.setDesktopFileName("fiddler-chat")
    app.setWindowIcon(application_icon())
    return app


def _folder() -> Path:
    """The data folder; where it cannot be made, the storage will say why."""
    with suppress(EngineError):
        return ensure_dir(data_dir())
    return data_dir()


def _say_unanswered(app: QApplication) -> int:
    """Another program has the data folder and does nothing any more: say so, and leave it alone."""
    apply_language(SettingsStore(settings_path()))
    error = EngineError(
        tr("Fiddler Chat is running already, but does not answer."),
        why=tr("Another window of it uses {folder}, and may be busy or stuck.", folder=data_dir()),
        action=tr("Wait a moment, or end it with your system's task manager, and start again."),
    )
    return _say(app, error)


def _say(app: QApplication, error: EngineError) -> int:
    """Show why the program does not start."""
    apply_appearance(SettingsStore(settings_path()))
    dialog = show_error(None, error)  # without a parent it lives as long as this name
    dialog.finished.connect(app.quit)
    app.exec()
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fiddler-chat", description="Chat with Mixture-of-Experts models that are larger than your GPU."
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="chats to import (JSON or zip)")
    parser.add_argument("--data-dir", metavar="FOLDER", help="where chats, settings and models are kept")
    parser.add_argument("--version", action="version", version=f"%(prog)s {version()}")
    return parser
