"""The real engine behind `app.engine_factory`'s protocols.

Everything that needs torch is imported inside the methods: they run in the worker's thread, long after the
window is on the screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
