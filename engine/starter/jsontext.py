"""JSON as people read it."""

from __future__ import annotations

import json
from collections.abc import Mapping


def to_json(value: Mapping[str, object]) -> str:
    """Indented JSON text with a newline at its end."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
