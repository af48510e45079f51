"""What a benchmark may refuse."""

from __future__ import annotations

from engine.errors import EngineError


class BenchError(EngineError):
    """A benchmark was asked for something that does not exist here, or a saved run cannot be read."""
