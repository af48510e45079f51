"""What the program remembers and nobody chooses in the dialog: no labels."""

from __future__ import annotations

from app.settings.option import Option

MODEL_PATH = Option("model.path", "")  # the folder of the model that is loaded at the start; empty: none
WIZARD_COMPLETED = Option("wizard.completed", False)
WIZARD_MODEL = Option(
    "wizard.model", ""
)  # what was chosen: "starter", "hub:owner/name", "folder"; empty: nothing
WIZARD_FOLDER = Option("wizard.folder", "")  # where it is, or is to be stored; empty: the usual place
WIZARD_PRECISION = Option("wizard.precision", "")  # chosen for it, until it is complete; empty: the setting's
# The choices of the last export.
EXPORT_FORMAT = Option("export.format", "markdown")
EXPORT_SYSTEM_PROMPT = Option("export.system_prompt", True)
EXPORT_SETTINGS = Option("export.settings", True)
EXPORT_STATISTICS = Option("export.statistics", True)
EXPORT_BRANCHES = Option("export.branches", True)
EXPORT_FOLDER = Option("export.folder", "")  # empty: the documents folder
WINDOW_GEOMETRY = Option("window.geometry", "")  # base64
WINDOW_STATE = Option("window.state", "")  # base64
SHORTCUTS = Option("shortcuts.changed", "")  # the user's own keys, see app.shortcuts.book; empty: none
