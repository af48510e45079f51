"""What loading and downloading a model takes, item by item, and how many experts the GPU has room for.

Pure functions over the machine's facts. Figures that are not exact are named constants with their source.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.checkpoint.inspect import ModelInfo
from engine.gpu_format import gpu_value_bytes
from engine.hardware.facts import DiskInfo, GpuInfo, MemoryInfo
from engine.models.config import MixtralConfig
from engine.requirements import Item, Need, Requirements, Resource
from engine.units import GIB, MIB

# The prompt is read in chunks of at most this many tokens, so this bounds the workspace.
PREFILL_CHUNK = 512
# Interpreter, torch, tokenizer and window, resident, without any model; CUDA's libraries add the second.
PROCESS_BYTES = 600 * MIB
CUDA_HOST_BYTES = 900 * MIB
# What CUDA, cuBLAS and their kernels take of a GPU's memory before the first tensor.
CUDA_DEVICE_BYTES = 400 * MIB
# Experts' worth of VRAM through which the others are copied: two slots, and a packed copy as it lands.
STREAM_SLOTS = 3
# Threads that read experts while loading, each with one expert's plain matrices beside the packed block.
LOADING_THREADS = 4
# Left free on the GPU for the desktop's ups and downs and for fragmentation.
_RESERVE_SHARE, _RESERVE_FLOOR = 0.025, 128 * MIB
# Left to other programs in RAM beyond what they use now.
_RAM_RESERVE, _RAM_RESERVE_SHARE = 1 * GIB, 0.1


@dataclass(frozen=True)
class VramBudget:
    """How a GPU's memory will be divided. `available` bytes may be used; `base` is needed beside experts."""

    available: int
    base: tuple[Item, ...]
    slots: int
    expert_bytes: int

    @property
    def fits(self) -> bool:
        """Whether everything but the experts has room, so that the GPU can take part."""
        return sum(item.nbytes for item in self.base) <= self.available

    def need(self) -> Need:
        """The budget as a need, with the experts that have a place."""
        items = self.base
        if self.slots:
            label = "1 expert" if self.slots == 1 else f"{self.slots} experts"
            items = (*items, Item(label, self.slots * self.expert_bytes))
        return Need(
            Resource.VRAM,
            items,
            self.available,
            (
                "Close programs that use the graphics card, or choose a shorter context.",
                "Or let the model run on the CPU alone.",
            ),
        )


def kv_bytes(info: ModelInfo, context: int, *, cuda: bool) -> int:
    """Bytes of the KV cache for `context` tokens, in the GPU's format or in float32 on the CPU."""
    return context * info.kv_bytes_per_token(gpu_value_bytes(info) if cuda else 4)


def workspace_bytes(config: MixtralConfig, context: int) -> int:
    """Activations of one prefill chunk: a dozen hidden states, an expert's inner state, attention scores.

    Scores are counted for one layer in float32, [heads, chunk, context]: an upper bound, as fused attention
    does not keep them.
    """
    chunk = min(PREFILL_CHUNK, context)
    inner = 12 * config.hidden_size + 3 * config.intermediate_size
    return 4 * (chunk * inner + config.num_heads * chunk * context + config.vocab_size)


def vram_budget(gpu: GpuInfo, info: ModelInfo, context: int, user_budget: int | None = None) -> VramBudget:
    """Divide the GPU's *free* memory, or the user's budget within it.

    `user_budget` is all that this program may take, in bytes; the reserve is then the user's business.
    """
    wider = gpu_value_bytes(info) // 2  # the files and the experts' places are bf16
    base = [
        Item("Everything but the experts", info.other_bytes * wider),
        Item(f"KV cache for {context} tokens", kv_bytes(info, context, cuda=True)),
        Item("Workspace", workspace_bytes(info.config, context) * wider // 2),
        Item("CUDA and its libraries", CUDA_DEVICE_BYTES),
        # In float32 an expert is widened as it runs.
        Item("Room to copy other experts in", (STREAM_SLOTS + 2 * (wider - 1)) * info.expert_bytes),
    ]
    available = gpu.vram_free
    if user_budget is None:
        reserve = max(_RESERVE_FLOOR, int(gpu.vram_total * _RESERVE_SHARE))
        base.append(Item("Reserve for the desktop", reserve))
    else:
        available = min(available, user_budget)
    left = available - sum(item.nbytes for item in base)
    total = info.config.num_layers * info.config.num_experts
    slots = min(total, max(0, left // info.expert_bytes))
    return VramBudget(available, tuple(base), slots, info.expert_bytes)


def arena_bytes(config: MixtralConfig) -> int:
    """RAM for all experts as packed for the kernels: sizes rounded up to 32, blocks to pages of 4096."""
    hidden, inner = _rounded(config.hidden_size, 32), _rounded(config.intermediate_size, 32)
    return config.num_layers * config.num_experts * _rounded(3 * hidden * inner * 2, 4096)


def ram_need(
    memory: MemoryInfo, info: ModelInfo, context: int, *, cuda: bool, reserve: int | None = None
) -> Need:
    """RAM for loading the model: every expert has its place there, also those that the GPU holds too."""
    config = info.config
    items = [Item(f"All {config.num_layers * config.num_experts} experts", arena_bytes(config))]
    if not cuda:
        items.append(Item("Everything but the experts", info.other_bytes))
        items.append(Item(f"KV cache for {context} tokens", kv_bytes(info, context, cuda=False)))
        items.append(Item("Workspace", workspace_bytes(config, context)))
    items.append(Item("Buffers for reading the files", LOADING_THREADS * info.expert_bytes))
    items.append(Item("The program itself", PROCESS_BYTES + (CUDA_HOST_BYTES if cuda else 0)))
    if reserve is None:
        reserve = min(_RAM_RESERVE, int(memory.total * _RAM_RESERVE_SHARE))
    if reserve:
        items.append(Item("Left to other programs", reserve))
    advice = ["Close other programs."]
    total = sum(item.nbytes for item in items)
    if total > memory.total:
        advice = [f"This computer has {memory.total / GIB:.0f} GiB; the model needs {total / GIB:.0f} GiB."]
    if not info.is_starter:
        advice.append("The starter model needs about 2 GiB.")
    if memory.may_grow:
        advice.append("This virtual machine is given more memory as it uses it: going on may well work.")
    return Need(Resource.RAM, tuple(items), memory.available, tuple(advice))


def download_requirements(
    disk: DiskInfo, name: str, nbytes: int, *, reserve: int = 1 * GIB, already: int = 0
) -> Requirements:
    """Disk space for a download (or conversion) of `nbytes`, of which `already` bytes are there."""
    items = (
        Item("Files of the model", max(0, nbytes - already)),
        Item("Left free on the disk", reserve),
    )
    need = Need(
        Resource.DISK,
        items,
        disk.free,
        (f"Free some space on the disk that holds {disk.path}, or choose a folder on another disk.",),
    )
    return Requirements((need,), f"download {name}")


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
