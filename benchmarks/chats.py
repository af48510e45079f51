"""Times the window with many saved chats: the list, a search in all texts, and the opening of a long chat.

    python benchmarks/chats.py [--chats 5000] [--messages 100000] [--long 2000] [--repeat 9] [--json]

The whole program runs. Each time is from what the user does to the picture that shows the outcome, and the
least of several counts: other programs only ever add to it. Beside it stands the processor time of the
window's thread. The search is timed without the window, too. Runs without a screen unless a Qt platform is
named (QT_QPA_PLATFORM).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

# Python puts this file's folder first on the path, where a file may have a package's name.
sys.path[0] = str(Path(__file__).resolve().parents[1])
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.paths import database_path, ensure_dir  # noqa: E402
from app.settings import SettingsStore, registry  # noqa: E402
from app.storage import ChatStore, open_store  # noqa: E402
from app.storage.incoming import IncomingChat, IncomingMessage, insert_chat  # noqa: E402
from app.storage.thread import StorageThread  # noqa: E402
from app.theme import theme  # noqa: E402
from app.window import MainWindow  # noqa: E402
from app.worker import EngineWorker  # noqa: E402
from benchmarks.streaming import ScriptedFactory, pause, section, wait  # noqa: E402
from engine.paths import DATA_DIR_VARIABLE  # noqa: E402

Figure = tuple[float, float]  # ms: from the action to the picture, and of the thread's processor time
LIMITS = {"open": 300.0, "search": 50.0}  # ms
SEARCHES = {
    "rare": "needle",
    "common": "paragraph",
    "phrase": '"ordinary prose"',
    "short": "zq",
    "cjk": "中文",
}
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def chat(number: int, messages: int, text: Callable[[int], str]) -> IncomingChat:
    """A chat with so many messages, questions and answers in turn."""
    begun = BEGAN + timedelta(minutes=number)
    said = tuple(
        IncomingMessage(
            "assistant" if place % 2 else "user", text(place), begun, parent=place - 1 if place else None
        )
        for place in range(messages)
    )
    return IncomingChat(f"Chat number {number}", begun, begun, messages=said)


def fill(store: ChatStore, chats: int, messages: int, long: int) -> int:
    """Save all chats and index them; the id of the long one, which is the last of the list."""
    saved = insert_chat(store, chat(0, long, lambda place: section(place) if place % 2 else f"And {place}?"))
    each = max(2, (messages - long) // chats)
    for number in range(1, chats):
        words = f"A paragraph of ordinary prose about subject {number}, 中文 {number}. "
        insert_chat(store, chat(number, each, lambda place, words=words: words * (1 + place % 7)))  # type: ignore[misc]
    insert_chat(store, chat(chats, 2, lambda place: "the needle in the haystack" if place else "zq?"))
    while store.index_some():
        pass
    return saved.id


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Run the loop until something is so; the thread sleeps while nothing happens."""
    beat = QTimer()
    beat.start(20)
    limit = time.perf_counter() + seconds
    while not condition():
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
        if time.perf_counter() > limit:
            raise TimeoutError("the program did not get there")


def least(repeat: int, run: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> Figure:
    """The shortest of several times, and the least processor time of this thread."""
    times, used = [], []
    for _ in range(repeat):
        prepare()
        begin, own = time.perf_counter(), time.thread_time()
        run()
        times.append((time.perf_counter() - begin) * 1e3)
        used.append((time.thread_time() - own) * 1e3)
    return min(times), min(used)


def measure_window(long: int, chats: int, repeat: int) -> dict[str, Figure]:
    """Open the list, search in it, and open the long chat, all through the window."""
    app = QApplication(sys.argv[:1])
    theme().apply("light")
    settings = SettingsStore(None)
    settings.set(registry.WIZARD_COMPLETED, True)
    settings.set(registry.MODEL_PATH, tempfile.gettempdir())
    storage = StorageThread(database_path())
    worker = EngineWorker(ScriptedFactory(1, 1.0))
    window = MainWindow(storage, worker, settings)
    window.resize(1280, 860)
    window.show()
    sidebar = window.sidebar

    def start() -> None:
        window.begin()
        until(lambda: sidebar.model.rowCount() > chats)
        window.repaint()

    figures = {"start": least(1, start)}
    wait(lambda: window.session.model is not None and worker.idle, 20)

    def show_list(ask: Callable[[], None]) -> None:
        done: list[int] = []
        ask()
        storage.run(lambda _store: 1).then(done.append)  # its answer comes after that to what was asked
        until(lambda: bool(done))
        sidebar.repaint()

    def empty() -> None:
        window.session.new_chat()
        until(lambda: not window.page.view.views)
        pause(0.2)  # for what the window does when it is idle

    def open_long() -> None:
        window.session.open(long)
        until(lambda: bool(window.page.view.views))
        window.repaint()

    def search(text: str) -> None:
        # Without the time that the field waits for the next letter.
        show_list(lambda: sidebar.search_changed.emit(text))

    figures["refresh"] = least(repeat, lambda: show_list(window.chats.refresh))
    figures["open"] = least(repeat, open_long, empty)
    for name, words in SEARCHES.items():
        figures[f"search_{name}_shown"] = least(repeat, lambda words=words: search(words), lambda: search(""))  # type: ignore[misc]
    search("")
    window.close()
    worker.shutdown(2000)
    storage.close()
    app.processEvents()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--chats", type=int, default=5000)
    parser.add_argument("--messages", type=int, default=100_000, help="in all chats together")
    parser.add_argument("--long", type=int, default=2000, help="messages in the long chat")
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[DATA_DIR_VARIABLE] = folder
        ensure_dir(database_path().parent)
        store = open_store(database_path()).store
        long = fill(store, options.chats, options.messages, options.long)
        count = len(store.conversations())
        searches = {
            f"search_{name}": least(options.repeat, lambda words=words: store.conversations(words))  # type: ignore[misc]
            for name, words in SEARCHES.items()
        }
        store.close()
        figures = searches | measure_window(long, options.chats, options.repeat)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"{count} chats, {options.messages} messages, {options.long} of them in one chat")
    for name, (value, used) in figures.items():
        limit = LIMITS.get(name.removesuffix("_shown").split("_")[0])
        verdict = "" if limit is None else "  (ok)" if value <= limit else f"  (more than {limit:.0f})"
        print(f"{name:22} {value:8.1f} ms, {used:8.1f} ms of the thread's processor time{verdict}")


if __name__ == "__main__":
    main()
