from __future__ import annotations

import logging
import threading

from hypothesis import given
from hypothesis import strategies as st

from app.logs.lines import MOST_LINES, LastLines, Line, parse


@given(st.lists(st.integers(0, 5), max_size=20))
def test_whoever_looks_again_and_again_sees_everything_once(steps: list[int]) -> None:
    lines = LastLines()
    seen: list[Line] = []
    seen_count = 0
    total = 0
    for step in steps:
        lines.add(Line(logging.INFO, str(total + n)) for n in range(step))
        total += step
        new, seen_count = lines.since(seen_count)
        seen += new
    assert [line.text for line in seen] == [str(n) for n in range(total)]
    assert seen_count == lines.count == total


def test_only_the_last_lines_are_kept() -> None:
    lines = LastLines()
    lines.add(Line(logging.INFO, str(n)) for n in range(3 * MOST_LINES))
    kept, count = lines.since(0)
    assert (len(kept), count, kept[-1].text) == (MOST_LINES, 3 * MOST_LINES, str(3 * MOST_LINES - 1))


def test_threads_lose_nothing() -> None:
    lines = LastLines()
    record = logging.makeLogRecord({"msg": "x", "levelno": logging.INFO})
    threads = [threading.Thread(target=lambda: [lines.emit(record) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines.since(0)[0]) == 800


def test_the_file_of_earlier_starts_is_read_by_entries() -> None:
    text = (
        "cut off line\n"
        "2026-01-02 03:04:05,678 INFO MainThread app.main: starts\n"
        "2026-01-02 03:04:06,678 ERROR engine app.worker: failed\n  File x\n"
    )
    assert [(line.level, line.text.count("\n")) for line in parse(text)] == [
        (logging.INFO, 0),
        (logging.ERROR, 1),
    ]
