"""What loading and downloading a model takes, item by item, and how many experts the GPU has room for.

Pure functions over the machine's facts. Figures that are not exact are named constants with their source.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.checkpoint.inspect import ModelInfo
from engine.experts.panels import unpacked_values
from engine.gpu_format import gpu_dense_bytes, gpu_value_bytes, host_table_bytes
from engine.hardware.facts import DiskInfo, GpuInfo, MemoryInfo
from engine.models.config import MixtralConfig
from engine.precision import precision_name
from engine.prompt_memory import cpu_workspace_bytes, prefill_chunk, workspace_room
from engine.requirements import Item, Need, Requirements, Resource
from engine.units import GIB, MIB, format_bytes
from kernels.formats import WeightFormat
from kernels.shape import ExpertShape

# Interpreter, torch, tokenizer and window, resident, without any model; CUDA's libraries add the second.
PROCESS_BYTES = 600 * MIB
CUDA_HOST_BYTES = 900 * MIB
# What CUDA and cuBLAS take of a GPU's memory before the first tensor, where that was not measured; and what
# kernels and graphs that are loaded later add to it.
CUDA_DEVICE_BYTES, CUDA_LATER_BYTES = 400 * MIB, 128 * MIB
# What torch's allocator cannot use of its blocks, which are multiples of 2 MB: with a context of 65 tokens,
# which leaves no slack elsewhere, a Mixtral in 4 bits did not fit into 24 GiB without it (H200).
ALLOCATOR_BYTES = 96 * MIB
# Places in VRAM through which the others are copied: one computed with, one on its way, one that comes next.
STREAM_SLOTS = 3
# Threads that read experts while loading, at most (quantising keeps any number of cores busy), and bytes that
# each reads before it packs them: they stay in a core's cache.
LOADING_THREADS, LOADING_SCRATCH = 16, 1 * MIB
# Places of experts in VRAM begin at multiples of this: whole sectors and cache lines for any kernel.
PLACE_ALIGNMENT = 512
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
    expert_bytes: int  # of one place
    prefill_chunk: int  # tokens of a prompt that there is room for at a time

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


def vram_budget(
    gpu: GpuInfo,
    info: ModelInfo,
    context: int,
    user_budget: int | None = None,
    weight_format: WeightFormat = WeightFormat.BF16,
) -> VramBudget:
    """Divide the GPU's *free* memory, or the user's budget within it.

    Experts lie there packed, as in RAM: in fewer bits more of them have room.

    `user_budget` is all that this program may take, in bytes; the reserve is then the user's business.
    """
    config, value_bytes = info.config, gpu_value_bytes(info)
    available = gpu.vram_free if user_budget is None else min(gpu.vram_free, user_budget)
    cuda_bytes = gpu.cuda_bytes or CUDA_DEVICE_BYTES
    base = [
        Item("The layers without their experts", gpu_dense_bytes(info, weight_format)),
        Item(f"KV cache for {context:,} tokens", kv_bytes(info, context, cuda=True)),
        Item("CUDA and its libraries", cuda_bytes + CUDA_LATER_BYTES + ALLOCATOR_BYTES),
        Item("Room to copy other experts in", _streaming_bytes(info, weight_format)),
    ]
    if user_budget is None:
        reserve = max(_RESERVE_FLOOR, int(gpu.vram_total * _RESERVE_SHARE))
        base.append(Item("Reserve for the desktop", reserve))
    left = available - sum(item.nbytes for item in base)
    total = config.num_layers * config.num_experts
    expert = place_bytes(config, weight_format)
    workspace = workspace_room(config, context, available, value_bytes, left=left, experts=total * expert)
    chunk = prefill_chunk(config, context, workspace, value_bytes)
    base.insert(2, Item(f"Workspace, for {chunk:,} tokens of a prompt at a time", workspace))
    slots = min(total, max(0, left - workspace) // expert)
    return VramBudget(available, tuple(base), slots, expert, chunk)


def _streaming_bytes(info: ModelInfo, weight_format: WeightFormat) -> int:
    """The slots, and the plain matrices of the panels that are unpacked at once."""
    config = info.config
    shape = ExpertShape(config.hidden_size, config.intermediate_size, weight_format)
    unpacked = unpacked_values(shape) * gpu_value_bytes(info)
    return STREAM_SLOTS * place_bytes(config, weight_format) + unpacked


def place_bytes(config: MixtralConfig, weight_format: WeightFormat) -> int:
    """Bytes of an expert's place on the GPU: packed, and aligned for any kernel."""
    return _rounded(packed_expert_bytes(config, weight_format), PLACE_ALIGNMENT)


def packed_expert_bytes(config: MixtralConfig, weight_format: WeightFormat) -> int:
    """Bytes of one expert as packed for the kernels: what decode reads of it, and what a copy carries."""
    return ExpertShape(config.hidden_size, config.intermediate_size, weight_format).nbytes


def arena_bytes(config: MixtralConfig, weight_format: WeightFormat = WeightFormat.BF16) -> int:
    """RAM for all experts as packed for the kernels, each rounded up to pages of 4096 bytes."""
    return config.num_layers * config.num_experts * _rounded(packed_expert_bytes(config, weight_format), 4096)


def ram_need(
    memory: MemoryInfo,
    info: ModelInfo,
    context: int,
    *,
    cuda: bool,
    reserve: int | None = None,
    weight_format: WeightFormat = WeightFormat.BF16,
    given_back: int = 0,
) -> Need:
    """RAM for loading the model: every expert has its place there, also those that the GPU holds too.

    But for `given_back` ones, whose memory is returned as soon as they are on the GPU.
    """
    if reserve is None:
        reserve = min(_RAM_RESERVE, int(memory.total * _RAM_RESERVE_SHARE))

    def items_in(other: WeightFormat) -> tuple[Item, ...]:
        return _ram_items(info, context, cuda, reserve, other, given_back)

    items = items_in(weight_format)
    advice = ["Close other programs."]
    total = sum(item.nbytes for item in items)
    if total > memory.total:
        advice = [f"This computer has {memory.total / GIB:.0f} GiB; the model needs {total / GIB:.0f} GiB."]
    short = total > memory.available
    for lighter in list(WeightFormat)[weight_format.number + 1 :] if short else ():
        needed = sum(item.nbytes for item in items_in(lighter))
        if needed <= memory.available:
            text = (
                f"With experts in {precision_name(lighter)} it needs {format_bytes(needed)}, which is there."
            )
            advice.append(text)
            break
    if not info.is_starter:
        advice.append("The starter model needs about 2.5 GiB.")
    if memory.may_grow:
        advice.append("This virtual machine is given more memory as it uses it: going on may well work.")
    return Need(Resource.RAM, items, memory.available, tuple(advice))


def _ram_items(
    info: ModelInfo, context: int, cuda: bool, reserve: int, weight_format: WeightFormat, given_back: int
) -> tuple[Item, ...]:
    config = info.config
    total = config.num_layers * config.num_experts
    label = f"All {total} experts" if not given_back else f"{total - given_back} of {total} experts"
    if weight_format is not WeightFormat.BF16:
        label += f" in {precision_name(weight_format)}"
    items = [Item(label, arena_bytes(config, weight_format) // total * (total - given_back))]
    if cuda and host_table_bytes(info):
        items.append(Item("Embeddings", host_table_bytes(info)))
    if not cuda:
        items.append(Item("Everything but the experts", info.other_bytes))
        items.append(Item(f"KV cache for {context:,} tokens", kv_bytes(info, context, cuda=False)))
        items.append(Item("Workspace", cpu_workspace_bytes(config, context)))
    items.append(Item("Buffers for reading the files", LOADING_THREADS * LOADING_SCRATCH))
    items.append(Item("The program itself", PROCESS_BYTES + (CUDA_HOST_BYTES if cuda else 0)))
    if reserve:
        items.append(Item("Left to other programs", reserve))
    return tuple(items)


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
