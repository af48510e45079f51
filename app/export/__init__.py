"""Conversations as files of their own: Markdown for people, JSON for programs."""

from app.export.json_format import to_json
from app.export.markdown import to_markdown
from app.export.names import free_path, suggested_name
from app.export.options import ExportOptions
from app.export.save import JSON, KINDS, ExportKind, save_conversation

__all__ = [
    "JSON",
    "KINDS",
    "ExportKind",
    "ExportOptions",
    "free_path",
    "save_conversation",
    "suggested_name",
    "to_json",
    "to_markdown",
]
