"""What is pasted or dragged."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData


def local_files(source: QMimeData) -> list[Path]:
    """The files in what is pasted or dragged; none if there is anything else among them."""
    urls = source.urls()
    paths = [Path(url.toLocalFile()) for url in urls if url.isLocalFile()]
    return paths if len(paths) == len(urls) else []
