"""The memory that reading a prompt takes, and how many of its tokens are read at a time. Pure; torch-free.

On a GPU a chunk should be long: every expert that is not there is copied once for each chunk. On the CPU
nothing is gained beyond a hundred tokens, and a cancel waits for the chunk.
"""

from __future__ import annotations

from engine.experts.panels import panels_at_once
from engine.models.config import MixtralConfig
from kernels.shape import PANEL_ROWS, ExpertShape

# A cancel waits for at most one chunk, half a second for the starter model on two cores.
CPU_CHUNK = 128  # tokens
# On a GPU. The least is what small cards are left with. With the most, a copied expert (6.4 ms over PCIe 5)
# is used for about as long as its copy took on a card with 60 TFLOP/s: longer chunks gain little.
LEAST_CHUNK, MOST_CHUNK = 512, 4096
# At most a twelfth of what may be used of the GPU, at 24 GB six of Mixtral's 54 experts: the longest chunk.
_SHARE = 12
# And at most a twelfth of the bytes of experts without a place there, which are copied once for each chunk.
# In 4 bits on 24 GiB a chunk of 4096 tokens took the places of 8 experts, with 50 missing: where copies run
# at 55 GB/s and the CPU reads 110, an answer of 160 tokens loses more by that than by four shorter chunks.
_SHARE_OF_MISSING = 12
# Hidden states in float32 that are alive at a time, at most: the residual stream, its norm, keys and queries
# before and after rounding, an expert's inputs and results. Counted, in attention and experts: 9; the rest is
# for what the allocator cannot use.
_HIDDEN_STATES = 12


def workspace_bytes(config: MixtralConfig, context: int, chunk: int, value_bytes: int) -> int:
    """Bytes that reading `chunk` tokens on a GPU takes beside weights and KV cache, in the longest context.

    `value_bytes` are those of a number there. Attention keeps no scores; what later chunks take beside the
    first is the mask [chunk, context], and the keys and values repeated for all query heads.
    """
    fixed = 2 * value_bytes * context * config.num_heads * config.head_dim + 4 * config.vocab_size
    return fixed + min(chunk, context) * _token_bytes(config, context, value_bytes)


def workspace_room(
    config: MixtralConfig, context: int, available: int, value_bytes: int, *, left: int, experts: int
) -> int:
    """Bytes of a GPU's `available` ones that are kept for prompts: shares, as far as chunks can use them.

    `left` are those that neither prompts nor experts take, below 0 where not even the rest has room; no more
    is kept than that, so that a small card reads shorter chunks instead of none. `experts` are the bytes of
    all experts.
    """
    least, most = (
        workspace_bytes(config, context, chunk, value_bytes) for chunk in (LEAST_CHUNK, MOST_CHUNK)
    )
    missing = experts - left  # below 0 where every expert has a place, and bytes are left
    wanted = max(missing // _SHARE_OF_MISSING, -missing)
    return min(max(min(available // _SHARE, wanted, left), least), most)


def prefill_chunk(config: MixtralConfig, context: int, room: int, value_bytes: int) -> int:
    """How many tokens of a prompt a GPU reads at a time within `room` bytes, at least the shortest chunk."""
    fixed = workspace_bytes(config, context, 0, value_bytes)
    fitting = max(0, room - fixed) // _token_bytes(config, context, value_bytes)
    return min(max(fitting, LEAST_CHUNK), MOST_CHUNK, context)


def cpu_workspace_bytes(config: MixtralConfig, context: int) -> int:
    """The same for a chunk on the CPU, in float32, with one layer's scores [heads, chunk, context]."""
    inner = _HIDDEN_STATES * config.hidden_size + 3 * config.intermediate_size
    return 4 * (CPU_CHUNK * (inner + config.num_heads * context) + config.vocab_size)


def _token_bytes(config: MixtralConfig, context: int, value_bytes: int) -> int:
    """Bytes for each token of a chunk: hidden states, an expert's inner states, a row of the mask."""
    shape = ExpertShape(config.hidden_size, config.intermediate_size)
    inner = 4 * min(panels_at_once(shape) * PANEL_ROWS, config.intermediate_size)
    mask = (value_bytes + 2) * context  # and what it is made from
    return 4 * _HIDDEN_STATES * config.hidden_size + value_bytes * inner + mask
