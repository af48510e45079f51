"""Times the window while a long answer streams in: prose, lists, code, tables and formulas at a fixed rate.

    python benchmarks/streaming.py [--tokens 20000] [--rate 200] [--json]

The whole program runs, with a script in the engine's place. A beat every 10 ms on the GUI thread tells of its
pauses: how much later than that it comes. Beside the pauses stands the processor time that each turn of the
thread's event loop took: where other programs keep the processor busy, only that is the window's own.
Runs without a screen (QT_QPA_PLATFORM=offscreen) unless another platform is named.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# Python puts this file's folder first on the path, where a file may have a package's name.
sys.path[0] = str(Path(__file__).resolve().parents[1])
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np  # noqa: E402
import psutil  # noqa: E402
from PySide6.QtCore import QAbstractEventDispatcher, QEventLoop, QObject, Qt, QTimer  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.paths import database_path  # noqa: E402
from app.settings import SettingsStore, registry  # noqa: E402
from app.storage.thread import StorageThread  # noqa: E402
from app.theme import theme  # noqa: E402
from app.window import MainWindow  # noqa: E402
from app.worker import EngineWorker  # noqa: E402
from engine.events import (  # noqa: E402
    Event,
    ExpertHits,
    Finished,
    FinishReason,
    GenerationStats,
    StatsUpdate,
    TextDelta,
)
from engine.options import LoadOptions  # noqa: E402
from engine.params import GenerationParams, Message  # noqa: E402
from engine.paths import DATA_DIR_VARIABLE  # noqa: E402
from engine.progress import CancelToken, ProgressCallback  # noqa: E402
from engine.status import EngineStatus  # noqa: E402

LAYERS, EXPERTS = 32, 8
BEAT_MS = 10
TOKEN = 4  # characters: about what a token has in English
LIMITS = {"longest": 50.0, "p99": 20.0, "cpu": 40.0}  # ms, ms, per cent of one core


def section(number: int) -> str:
    """A piece of the answer with everything in it; no two are the same, as formulas are kept."""
    rows = "\n".join(f"| item {row} | {row * number} | $x_{{{row}}}^{{{number}}}$ |" for row in range(6))
    code = "\n".join(
        f'    values[{line}] = compute({line}, scale={number}.5)  # step {line} of "{number}"'
        for line in range(25)
    )
    return f"""## Section {number}

Here is a paragraph of *ordinary* prose with **strong words**, some `inline_code({number})`, a link to
[a page](https://example.org/{number}) and a formula $e^{{i\\pi {number}}} + 1 = 0$ in the middle of the line.
It goes on for a few sentences, as answers do. 中文和日本語も混ざります。

1. The first point, which explains something at length and takes more than one line of the window to do so.
2. The second point:
   - with a detail about {number}
   - and another one, \\(a_{number} \\le b\\)
3. The third point.

```python
def section_{number}(values: list[float]) -> None:
    \"\"\"Fill the values.\"\"\"
{code}
```

| Name | Value | Power |
|:-----|------:|:-----:|
{rows}

The sum is

$$\\sum_{{k=1}}^{{{number}}} \\frac{{1}}{{k^2}} + \\int_0^{{{number}}} \\sqrt{{x}}\\,dx$$

> A remark in a quote, number {number}, that ends the section.

"""


class ScriptedEngine:
    """Says its script at a fixed rate."""

    default_params = GenerationParams()

    def __init__(self, tokens: int, rate: float) -> None:
        self._tokens, self._rate = tokens, rate

    def generate(
        self, messages: Sequence[Message], params: GenerationParams, cancel: CancelToken | None = None
    ) -> Iterator[Event]:
        text = itertools.chain.from_iterable(section(number) for number in itertools.count(1))
        begin = time.perf_counter()
        counts = np.zeros((2, LAYERS, EXPERTS, 4), dtype=np.int64)
        for done in range(1, self._tokens + 1):
            if cancel is not None and cancel.cancelled:
                break
            yield TextDelta("".join(itertools.islice(text, TOKEN)))
            counts[1, :, done % EXPERTS, done % 4] += 1
            if done % 5 == 0:
                now = time.perf_counter() - begin
                yield StatsUpdate(
                    GenerationStats(
                        prompt_tokens=12,
                        generated_tokens=done,
                        decode_seconds=now,
                        tokens_per_second=done / now,
                        tokens_per_second_now=self._rate,
                        context_used=done,
                        context_length=32768,
                        hits=ExpertHits(counts.copy()),
                    )
                )
            time.sleep(max(0.0, begin + done / self._rate - time.perf_counter()))
        yield Finished(FinishReason.EOS, GenerationStats(generated_tokens=self._tokens))

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return sum(self.count_tokens(message.content) for message in messages)

    def status(self) -> EngineStatus:
        return EngineStatus(
            model_name="Script",
            layers=LAYERS,
            experts=EXPERTS,
            residency=np.zeros((LAYERS, EXPERTS), dtype=np.bool_),
            ram_used=2**30,
            vram_used=0,
            vram_budget=0,
            threads=1,
            isa="avx2",
            policy="makespan",
            device="CPU",
            has_gpu=False,
            context_length=32768,
            is_starter=True,
        )

    def close(self) -> None:
        pass


class ScriptedFactory:
    """Loads the script; makes and measures nothing."""

    def __init__(self, tokens: int, rate: float) -> None:
        self._tokens, self._rate = tokens, rate

    def load(
        self, path: Path, options: LoadOptions, progress: ProgressCallback, cancel: CancelToken
    ) -> ScriptedEngine:
        return ScriptedEngine(self._tokens, self._rate)

    def calibrate(self, *rest: Any) -> Any:
        raise NotImplementedError

    def prepare_starter(self, *rest: Any, force: bool = False) -> Path:
        raise NotImplementedError

    def download(self, *rest: Any, force: bool = False) -> Path:
        raise NotImplementedError


class Beat(QObject):
    """Notes how late each beat of the GUI thread is, and what each turn of its loop takes, in ms."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[float] = []
        self.turns: list[float] = []
        self._last = self._used = 0.0
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._beat)

    def start(self) -> None:
        self._last, self._used = time.perf_counter(), time.thread_time()
        self._timer.start(BEAT_MS)
        QAbstractEventDispatcher.instance().aboutToBlock.connect(self._turn)

    def stop(self) -> None:
        self._timer.stop()
        QAbstractEventDispatcher.instance().aboutToBlock.disconnect(self._turn)

    def _beat(self) -> None:
        now = time.perf_counter()
        self.late.append(max(0.0, (now - self._last) * 1e3 - BEAT_MS))
        self._last = now

    def _turn(self) -> None:
        used = time.thread_time()
        self.turns.append((used - self._used) * 1e3)
        self._used = used


def wait(condition: Callable[[], bool], seconds: float) -> None:
    """Let the program run until something is so."""
    loop = QEventLoop()
    poll = QTimer()
    poll.timeout.connect(lambda: loop.quit() if condition() else None)
    poll.start(100)
    limit = QTimer()
    limit.setSingleShot(True)
    limit.timeout.connect(loop.quit)
    limit.start(int(seconds * 1e3))
    loop.exec()
    if not condition():
        raise TimeoutError("the program did not get there")


def pause(seconds: float) -> None:
    """Let the program run for a while."""
    loop = QEventLoop()
    QTimer.singleShot(int(seconds * 1e3), loop.quit)
    loop.exec()


def measure(tokens: int, rate: float) -> dict[str, Any]:
    """Stream one answer through the window; times in ms, memory in MiB."""
    app = QApplication(sys.argv[:1])
    theme().apply("light")
    settings = SettingsStore(None)
    settings.set(registry.WIZARD_COMPLETED, True)
    settings.set(registry.MODEL_PATH, tempfile.gettempdir())
    storage = StorageThread(database_path())
    worker = EngineWorker(ScriptedFactory(tokens, rate))
    window = MainWindow(storage, worker, settings)
    window.resize(1280, 860)
    window.show()
    window.begin()
    wait(lambda: window.session.model is not None and worker.idle, 20)
    pause(1)
    process = psutil.Process()
    memory = [process.memory_info().rss]
    beat = Beat()
    window.session.send("Tell me all of it")
    wait(lambda: window.session.busy, 20)
    beat.start()
    begin, used, own = time.perf_counter(), time.process_time(), time.thread_time()
    wait(lambda: not window.session.busy, 3 * tokens / rate + 20)
    beat.stop()
    elapsed = time.perf_counter() - begin
    used, own = time.process_time() - used, time.thread_time() - own
    memory.append(process.memory_info().rss)
    for _ in range(2):
        pause(3)
        memory.append(process.memory_info().rss)
    shown = sum(len(message.content()) for message in window.page.view.views)
    window.close()
    pause(0.2)
    worker.shutdown(2000)
    storage.close()
    app.processEvents()
    return {
        "tokens": tokens,
        "characters": shown,
        "seconds": elapsed,
        "longest": max(beat.late),
        "p99": float(np.percentile(beat.late, 99)),
        "longest_turn": max(beat.turns),
        "p99_turn": float(np.percentile(beat.turns, 99)),
        "cpu": 100 * own / elapsed,
        "cpu_all_threads": 100 * used / elapsed,
        "memory": [value / 2**20 for value in memory],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=200.0, help="tokens a second")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ[DATA_DIR_VARIABLE] = folder
        figures = measure(options.tokens, options.rate)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    before, end, *after = figures["memory"]
    print(f"{figures['tokens']} tokens, {figures['characters']} characters in {figures['seconds']:.1f} s")
    for what, name, unit in (
        ("longest pause of the GUI thread", "longest", "ms"),
        ("99th percentile of its pauses", "p99", "ms"),
        ("processor time of the GUI thread", "cpu", "% of one core"),
    ):
        verdict = "ok" if figures[name] <= LIMITS[name] else f"more than {LIMITS[name]:.0f}"
        print(f"{what:34} {figures[name]:7.1f} {unit}  ({verdict})")
    work = f"{figures['longest_turn']:7.1f} ms, 99th percentile {figures['p99_turn']:.1f} ms"
    print(f"{'most work in a turn of its loop':34} {work}")
    print(f"{'all threads, with the script':34} {figures['cpu_all_threads']:7.1f} % of one core")
    later = ", ".join(f"{value:.0f}" for value in after)
    print(f"memory: {before:.0f} MiB before, {end:.0f} at the end, {later} a few seconds later")


if __name__ == "__main__":
    main()
