"""Makes conversations in the form in which ChatGPT exports them."""

from __future__ import annotations

from typing import Any

START = 1_700_000_000.25


def message(role: str, *parts: Any, **more: Any) -> dict[str, Any]:
    """A message; `kind` and the keys of its content and metadata can be given."""
    kind = more.pop("kind", "text")
    content = {"content_type": kind, **more.pop("content", {})}
    if parts:
        content["parts"] = list(parts)
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": more.pop("time", None),
        "content": content,
        "status": more.pop("status", "finished_successfully"),
        "recipient": more.pop("recipient", "all"),
        "metadata": more,
    }


def conversation(*nodes: tuple[str, str | None, dict[str, Any] | None], **more: Any) -> dict[str, Any]:
    """A conversation of nodes, each a name, its parent's, and a message; the last is the current one."""
    mapping: dict[str, Any] = {}
    for name, parent, said in nodes:
        mapping[name] = {"id": name, "message": said, "parent": parent, "children": []}
        if parent in mapping:
            mapping[parent]["children"].append(name)
    return {
        "title": "Rome",
        "create_time": START,
        "update_time": START + 60,
        "mapping": mapping,
        "current_node": nodes[-1][0] if nodes else None,
        "conversation_id": "6f1c",
        **more,
    }


def simple(question: str = "When was Rome founded?", **more: Any) -> dict[str, Any]:
    """A question and its answer below the empty nodes that every export begins with."""
    return conversation(
        ("root", None, None),
        ("system", "root", message("system", "", is_visually_hidden_from_conversation=True)),
        ("q", "system", message("user", question, time=START + 1)),
        ("a", "q", message("assistant", "In **753 BC**.", time=START + 2, model_slug="gpt-4o")),
        **more,
    )
