"""Takes part as the program does, in a process of its own, and says what came of it (for test_instance)."""

import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.desktop.handover import Handover
from app.desktop.instance import SingleInstance, Start

app = QCoreApplication(sys.argv[:1])
instance = SingleInstance(Path(sys.argv[1]))
start = instance.begin(Handover(tuple(map(Path, sys.argv[2:]))))
print(start.name, flush=True)
if start is Start.FIRST:
    instance.asked.connect(lambda handover: print(*map(str, handover.files), flush=True))
    app.exec()
