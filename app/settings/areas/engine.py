"""Where and how the model runs. Most apply when it is loaded again."""

from __future__ import annotations

from app.i18n import tr_noop
from app.settings.option import Choice, Option

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
    synonyms_text=tr_noop("policy GPU CPU scheduling offload stream fiddler speed"),
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
    synonyms_text=tr_noop("quantization quantisation bits int8 int4 bf16 quality speed memory"),
)
EXACT_ACTIVATIONS = Option(
    "engine.exact_activations",
    False,
    tr_noop("Never round activations to 8 bits"),
    tr_noop("Only for experts in 8 or 4 bits, and only where calibration finds rounding faster."),
    synonyms_text=tr_noop("rounding quality precision int8"),
)
VRAM_BUDGET = Option(
    "engine.vram_budget_gib",
    0.0,
    tr_noop("Graphics memory to use (GiB)"),
    tr_noop("More holds more experts and is faster. 0 takes what is free, less a reserve."),
    minimum=0,
    maximum=4096,
    synonyms_text=tr_noop("VRAM GPU memory limit video budget speed"),
)
THREADS = Option(
    "engine.threads",
    0,
    tr_noop("CPU threads"),
    tr_noop(
        "More are faster, up to the physical cores; fewer leave room for other programs. 0 takes the "
        "physical cores, all but one if there are many."
    ),
    minimum=0,
    maximum=1024,
    synonyms_text=tr_noop("cores processor parallel speed"),
)
CONTEXT_LENGTH = Option(
    "engine.context_length",
    0,
    tr_noop("Context length (tokens)"),
    tr_noop("How much of a chat the model remembers. Longer needs more memory. 0 takes 4,096 or less."),
    minimum=0,
    maximum=10_000_000,
    synonyms_text=tr_noop("window memory tokens history KV cache"),
)
RAM_RESERVE = Option(
    "engine.ram_reserve_gib",
    0.0,
    tr_noop("Memory left to other programs (GiB)"),
    tr_noop("A model that would leave less than this is refused with a warning. 0 is automatic."),
    minimum=0,
    maximum=4096,
    synonyms_text=tr_noop("RAM limit reserve free memory other programs"),
)
