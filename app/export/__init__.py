"""Conversations as files of their own: for people to read, and as JSON for programs."""

from app.export.html import to_html
from app.export.json_format import to_json
from app.export.kinds import HTML, JSON, KINDS, MARKDOWN, PDF, TEXT, ExportKind, content, kind_named
from app.export.markdown import to_markdown
from app.export.names import free_path, suggested_name
from app.export.options import ExportOptions
from app.export.pdf import to_pdf
from app.export.plain import to_text

__all__ = [
    "HTML",
    "JSON",
    "KINDS",
    "MARKDOWN",
    "PDF",
    "TEXT",
    "ExportKind",
    "ExportOptions",
    "content",
    "free_path",
    "kind_named",
    "suggested_name",
    "to_html",
    "to_json",
    "to_markdown",
    "to_pdf",
    "to_text",
]
