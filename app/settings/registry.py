"""Every setting of the program, in the order in which the dialog shows them.

`settings.get(registry.TEMPERATURE)` is typed; the key works as well: `settings["sampling.temperature"]`.
"""

from __future__ import annotations

from typing import Any

from app.i18n import tr_noop
from app.settings.option import Choice, Option

_MAX_SEED = 2**63 - 1

THEME = Option(
    "appearance.theme",
    "system",
    tr_noop("Theme"),
    tr_noop("Light, dark, or whatever the desktop uses at the moment."),
    choices=(
        Choice("system", tr_noop("As the desktop")),
        Choice("light", tr_noop("Light")),
        Choice("dark", tr_noop("Dark")),
    ),
)
FONT_SIZE = Option(
    "appearance.font_size",
    0,
    tr_noop("Text size"),
    tr_noop("Size of the text in points. 0 takes the desktop's size."),
    minimum=0,
    maximum=48,
)

SYSTEM_PROMPT = Option(
    "chat.system_prompt",
    "",
    tr_noop("System prompt"),
    tr_noop("What the model is told before each new chat. Chats that exist keep theirs."),
)
SEND_ON_ENTER = Option(
    "chat.send_on_enter",
    True,
    tr_noop("Enter sends the message"),
    tr_noop("Shift+Enter then begins a new line. Otherwise Enter begins a line and Ctrl+Enter sends."),
)

USE_MODEL_DEFAULTS = Option(
    "sampling.use_model_defaults",
    True,
    tr_noop("Use the model's own values"),
    tr_noop("Models come with values that suit them. Turn this off to use the values below instead."),
)
TEMPERATURE = Option(
    "sampling.temperature",
    0.7,
    tr_noop("Temperature"),
    tr_noop("Higher is more varied, lower more predictable. 0 always takes the most likely word."),
    minimum=0,
    maximum=10,
)
TOP_K = Option(
    "sampling.top_k",
    0,
    tr_noop("Top-k"),
    tr_noop("Choose among this many of the most likely next words only. 0 is no limit."),
    minimum=0,
    maximum=1_000_000,
)
TOP_P = Option(
    "sampling.top_p",
    1.0,
    tr_noop("Top-p"),
    tr_noop("Choose among the likeliest words that together have this probability. 1 is no limit."),
    minimum=0.01,
    maximum=1,
)
MIN_P = Option(
    "sampling.min_p",
    0.0,
    tr_noop("Min-p"),
    tr_noop("Leave out words less likely than this share of the likeliest one's probability. 0 is off."),
    minimum=0,
    maximum=0.99,
)
REPETITION_PENALTY = Option(
    "sampling.repetition_penalty",
    1.0,
    tr_noop("Repetition penalty"),
    tr_noop("Above 1, words that have occurred become less likely. 1 is off."),
    minimum=0.01,
    maximum=10,
)
SEED = Option(
    "sampling.seed",
    -1,
    tr_noop("Seed"),
    tr_noop("The same seed gives the same answer again. −1 draws a new one for each answer."),
    minimum=-1,
    maximum=_MAX_SEED,
)
MAX_TOKENS = Option(
    "sampling.max_tokens",
    1024,
    tr_noop("Longest answer"),
    tr_noop("An answer ends after this many tokens (a token is about three quarters of a word)."),
    minimum=1,
    maximum=1_000_000,
)

POLICY = Option(
    "engine.policy",
    "makespan",
    tr_noop("Where experts run"),
    tr_noop("Decides for each expert that is not on the graphics card. Without a card all run on the CPU."),
    choices=(
        Choice("makespan", tr_noop("CPU and graphics card at the same time")),
        Choice("paper", tr_noop("One or the other, whichever is faster (Fiddler's paper)")),
        Choice("cpu", tr_noop("Always on the CPU")),
        Choice("stream", tr_noop("Always copied to the graphics card")),
    ),
)
PRECISION = Option(
    "engine.precision",
    "bf16",
    tr_noop("Precision of experts"),
    tr_noop("Fewer bits need less memory and are read faster, and cost some of the answers' quality."),
    choices=(
        Choice("bf16", tr_noop("As in the model's files (bf16)")),
        Choice("int8", tr_noop("8 bits")),
        Choice("int4", tr_noop("4 bits")),
    ),
)
EXACT_ACTIVATIONS = Option(
    "engine.exact_activations",
    False,
    tr_noop("Never round activations to 8 bits"),
    tr_noop("Only for experts in 8 or 4 bits, and only where calibration finds rounding faster."),
)
VRAM_BUDGET = Option(
    "engine.vram_budget_gib",
    0.0,
    tr_noop("Graphics memory to use (GiB)"),
    tr_noop("More holds more experts and is faster. 0 takes what is free, less a reserve."),
    minimum=0,
    maximum=4096,
)
THREADS = Option(
    "engine.threads",
    0,
    tr_noop("CPU threads"),
    tr_noop("Threads that compute experts. 0 takes the physical cores, all but one if there are many."),
    minimum=0,
    maximum=1024,
)
CONTEXT_LENGTH = Option(
    "engine.context_length",
    0,
    tr_noop("Context length (tokens)"),
    tr_noop("How much of a chat the model remembers. Longer needs more memory. 0 takes 4096 or less."),
    minimum=0,
    maximum=10_000_000,
)
RAM_RESERVE = Option(
    "engine.ram_reserve_gib",
    0.0,
    tr_noop("Memory left to other programs (GiB)"),
    tr_noop("A model that would leave less than this is refused with a warning. 0 is automatic."),
    minimum=0,
    maximum=4096,
)

MODEL_PATH = Option("model.path", "")  # the folder of the model that is loaded at the start; empty: none
WIZARD_COMPLETED = Option("wizard.completed", False)
WIZARD_MODEL = Option(
    "wizard.model", ""
)  # what was chosen: "starter", "hub:owner/name", "folder"; empty: nothing
WIZARD_FOLDER = Option("wizard.folder", "")  # where it is, or is to be stored; empty: the usual place
WIZARD_PRECISION = Option("wizard.precision", "")  # chosen for it, until it is complete; empty: the setting's
PANEL_VISIBLE = Option(
    "panel.visible",
    True,
    tr_noop("Show the live panel"),
    tr_noop("Speed, memory and the map of experts beside the chat."),
)
# The choices of the last export.
EXPORT_FORMAT = Option("export.format", "markdown")
EXPORT_SYSTEM_PROMPT = Option("export.system_prompt", True)
EXPORT_SETTINGS = Option("export.settings", True)
EXPORT_STATISTICS = Option("export.statistics", True)
EXPORT_BRANCHES = Option("export.branches", True)
EXPORT_FOLDER = Option("export.folder", "")  # empty: the documents folder
WINDOW_GEOMETRY = Option("window.geometry", "")  # base64
WINDOW_STATE = Option("window.state", "")  # base64

OPTIONS: tuple[Option[Any], ...] = (
    THEME,
    FONT_SIZE,
    PANEL_VISIBLE,
    SYSTEM_PROMPT,
    SEND_ON_ENTER,
    USE_MODEL_DEFAULTS,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    MIN_P,
    REPETITION_PENALTY,
    SEED,
    MAX_TOKENS,
    POLICY,
    PRECISION,
    EXACT_ACTIVATIONS,
    VRAM_BUDGET,
    THREADS,
    CONTEXT_LENGTH,
    RAM_RESERVE,
    MODEL_PATH,
    WIZARD_COMPLETED,
    WIZARD_MODEL,
    WIZARD_FOLDER,
    WIZARD_PRECISION,
    EXPORT_FORMAT,
    EXPORT_SYSTEM_PROMPT,
    EXPORT_SETTINGS,
    EXPORT_STATISTICS,
    EXPORT_BRANCHES,
    EXPORT_FOLDER,
    WINDOW_GEOMETRY,
    WINDOW_STATE,
)

BY_KEY: dict[str, Option[Any]] = {option.key: option for option in OPTIONS}
