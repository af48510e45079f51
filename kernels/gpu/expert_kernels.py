"""The two Triton kernels of an expert: gate and up to the inner activations, down to partial outputs.

`kernels.gpu.experts` starts them and describes their arguments. Programs that share weights are neighbours
(the pair of token and expert is the fastest dimension of the grid), and one program serves up to `MEMBERS`
pairs of one expert with every weight it reads. Sums have a fixed order: results are the same bits each time.
Offsets within an expert are of 32 bits, or of 64 with WIDE.
"""

# Triton takes `tuple + tuple`, not `(*tuple, item)`, and mypy knows no type for a tuple that grows.
# ruff: noqa: RUF005
# mypy: disable-error-code="assignment"

from __future__ import annotations

import triton
import triton.language as tl

from kernels.gpu.pairs import load_pair, members_of, place_of
from kernels.gpu.words import (
    BF16,
    BLOCK_GROUPS,
    GROUP_BYTES,
    INT4,
    PANEL_ROWS,
    SIDE_BYTES,
    TILE_COLS,
    TILE_ROWS,
    as_words,
    group,
    pair,
    unscale_even,
    unscale_odd,
)


@triton.jit(do_not_specialize=["magic", "pairs"])
def gate_up(
    data: tl.tensor,
    x: tl.tensor,
    ids: tl.tensor,
    table: tl.tensor,
    firsts: tl.tensor,
    inner: tl.tensor,
    magic: tl.tensor,
    pairs: tl.tensor,
    HIDDEN: tl.constexpr,
    PANELS: tl.constexpr,
    TOP_K: tl.constexpr,
    EXPERTS: tl.constexpr,
    STRIDE: tl.constexpr,
    FORMAT: tl.constexpr,
    STREAMED: tl.constexpr,
    WIDE: tl.constexpr,
    PAIRED: tl.constexpr,
    PAIRS: tl.constexpr,
    MEMBERS: tl.constexpr,
    UNITS: tl.constexpr,
    WORDS: tl.constexpr,
) -> None:
    """inner[pair, 16 neurons] = silu(w1 x) · (w3 x). Grid: (pairs, 2 · panels).

    With STREAMED, panels before the expert's entry in `firsts` are left out. A thread takes WORDS words of a
    row one after the other, a whole group where there are groups; UNITS of these are taken at once.
    """
    first_pair = tl.program_id(0)
    tile = tl.program_id(1)
    wanted, found = place_of(ids, table, first_pair, EXPERTS)
    if found < 0:
        return
    panel = tile // 2
    if STREAMED:  # noqa: SIM102 - Triton would read `firsts` in any case
        if panel < tl.load(firsts + wanted):
            return
    members, served = members_of(ids, wanted, first_pair, pairs, MEMBERS, PAIRS)
    if served:
        return

    K: tl.constexpr = (HIDDEN + TILE_COLS - 1) // TILE_COLS
    ROW_WORDS: tl.constexpr = 16 >> FORMAT  # of a tile
    INPUTS: tl.constexpr = TILE_COLS // ROW_WORDS  # of a word
    TILE_BYTES: tl.constexpr = 1024 >> FORMAT
    PARAMETER_BYTES: tl.constexpr = GROUP_BYTES if FORMAT != BF16 else 0
    PANEL_BYTES: tl.constexpr = 6 * K * (TILE_BYTES + PARAMETER_BYTES)
    COLUMNS: tl.constexpr = (K + BLOCK_GROUPS - 1) // BLOCK_GROUPS
    LENGTH: tl.constexpr = K * ROW_WORDS // WORDS  # units of a row

    if WIDE:
        panel = panel.to(tl.int64)
    half = tile % 2
    block = data + found.to(tl.int64) * STRIDE
    start = panel * PANEL_BYTES
    gate_words = as_words(block + start + half * (K * TILE_BYTES))
    up_words = as_words(block + start + (2 + half) * (K * TILE_BYTES))
    parameters = block + start + 6 * K * TILE_BYTES
    side = block + PANELS * PANEL_BYTES + (panel * 4 + half) * (COLUMNS * SIDE_BYTES)

    row = tl.arange(0, TILE_ROWS)
    unit = tl.arange(0, UNITS)
    zeros = tl.zeros([UNITS, TILE_ROWS], tl.float32)
    gate = (zeros,) * MEMBERS
    up = (zeros,) * MEMBERS
    for begin in range(0, LENGTH, UNITS):
        at = begin + unit
        inside = (at < LENGTH)[:, None]
        a = ()  # all words are on their way before the first is looked at
        b = ()
        for word in tl.static_range(WORDS):
            offset = (at * WORDS + word)[:, None] * TILE_ROWS + row[None, :]
            a = a + (tl.load(gate_words + offset, mask=inside, other=0, eviction_policy="evict_first"),)
            b = b + (tl.load(up_words + offset, mask=inside, other=0, eviction_policy="evict_first"),)
        gate_part = (zeros,) * MEMBERS
        up_part = (zeros,) * MEMBERS
        total = (tl.zeros([UNITS], tl.float32),) * MEMBERS
        for word in tl.static_range(WORDS):
            for step in tl.static_range(INPUTS // 2):
                a_even, a_odd = pair(a[word], step, magic, FORMAT)
                b_even, b_odd = pair(b[word], step, magic, FORMAT)
                col = (at * WORDS + word) * INPUTS + 2 * step
                gate_sum, up_sum, total_sum = (), (), ()
                for number in tl.static_range(MEMBERS):
                    token = tl.maximum(members[number], 0) // TOP_K * HIDDEN
                    even, odd = load_pair(x, token + col, col < HIDDEN, col + 1 < HIDDEN, PAIRED)
                    total_sum = total_sum + (total[number] + (even + odd),)
                    even = unscale_even(even, step, FORMAT)[:, None]
                    odd = unscale_odd(odd, step, FORMAT)[:, None]
                    gate_sum = gate_sum + (gate_part[number] + a_even * even + a_odd * odd,)
                    up_sum = up_sum + (up_part[number] + b_even * even + b_odd * odd,)
                gate_part, up_part, total = gate_sum, up_sum, total_sum
        gate_sum, up_sum = (), ()
        if FORMAT == BF16:
            for number in tl.static_range(MEMBERS):
                gate_sum = gate_sum + (gate[number] + gate_part[number],)
                up_sum = up_sum + (up[number] + up_part[number],)
        else:
            scales = parameters + half * (K * GROUP_BYTES) + at[:, None] * GROUP_BYTES
            factors = side + (at // BLOCK_GROUPS)[:, None] * SIDE_BYTES
            gate_step, gate_offset = group(scales, factors, row[None, :], inside, FORMAT)
            up_step, up_offset = group(
                scales + 2 * K * GROUP_BYTES, factors + 2 * COLUMNS * SIDE_BYTES, row[None, :], inside, FORMAT
            )
            for number in tl.static_range(MEMBERS):
                gate_new = gate[number] + gate_part[number] * gate_step
                up_new = up[number] + up_part[number] * up_step
                if FORMAT == INT4:
                    gate_new -= total[number][:, None] * gate_offset
                    up_new -= total[number][:, None] * up_offset
                gate_sum = gate_sum + (gate_new,)
                up_sum = up_sum + (up_new,)
        gate, up = gate_sum, up_sum
    neuron = panel * PANEL_ROWS + half * TILE_ROWS + row
    for number in tl.static_range(MEMBERS):
        g = tl.sum(gate[number], 0)
        out = g / (1.0 + tl.exp(-g)) * tl.sum(up[number], 0)
        tl.store(inner + members[number] * (PANELS * PANEL_ROWS) + neuron, out, mask=members[number] >= 0)


@triton.jit(do_not_specialize=["magic", "pairs"])
def down(
    data: tl.tensor,
    ids: tl.tensor,
    weights: tl.tensor,
    table: tl.tensor,
    firsts: tl.tensor,
    inner: tl.tensor,
    partial: tl.tensor,
    magic: tl.tensor,
    pairs: tl.tensor,
    HIDDEN: tl.constexpr,
    PANELS: tl.constexpr,
    EXPERTS: tl.constexpr,
    STRIDE: tl.constexpr,
    FORMAT: tl.constexpr,
    STREAMED: tl.constexpr,
    WIDE: tl.constexpr,
    PAIRS: tl.constexpr,
    MEMBERS: tl.constexpr,
    SPLITS: tl.constexpr,
    ROW_TILES: tl.constexpr,
    AT_ONCE: tl.constexpr,
) -> None:
    """partial[pair, split, 16 · ROW_TILES rows] = weight · (w2 inner over the split's panels).

    Grid: (pairs, row tiles / ROW_TILES, SPLITS). A split is a run of panels, the same ones whichever are left
    out; AT_ONCE of them are taken at once. A thread has rows of its own: no sum crosses threads before
    the end.
    """
    first_pair = tl.program_id(0)
    split = tl.program_id(2)
    wanted, found = place_of(ids, table, first_pair, EXPERTS)
    if found < 0:
        return
    members, served = members_of(ids, wanted, first_pair, pairs, MEMBERS, PAIRS)
    if served:
        return

    K: tl.constexpr = (HIDDEN + TILE_COLS - 1) // TILE_COLS
    ROW_WORDS: tl.constexpr = 16 >> FORMAT
    INPUTS: tl.constexpr = TILE_COLS // ROW_WORDS
    TILE_BYTES: tl.constexpr = 1024 >> FORMAT
    PARAMETER_BYTES: tl.constexpr = GROUP_BYTES if FORMAT != BF16 else 0
    PANEL_BYTES: tl.constexpr = 6 * K * (TILE_BYTES + PARAMETER_BYTES)
    COLUMNS: tl.constexpr = (K + BLOCK_GROUPS - 1) // BLOCK_GROUPS
    ROWS: tl.constexpr = ROW_TILES * TILE_ROWS
    SHARE: tl.constexpr = (PANELS + SPLITS - 1) // SPLITS

    block = data + found.to(tl.int64) * STRIDE
    parameters = block + 6 * K * TILE_BYTES + 4 * K * GROUP_BYTES
    side = block + PANELS * PANEL_BYTES + PANELS * 4 * COLUMNS * SIDE_BYTES
    line = tl.arange(0, ROWS)
    tile = (tl.program_id(1) * ROW_TILES + line // TILE_ROWS)[None, :]
    row = (line % TILE_ROWS)[None, :]

    begin = split * SHARE
    if STREAMED:
        begin = tl.maximum(begin, tl.load(firsts + wanted))
    stop = tl.minimum(split * SHARE + SHARE, PANELS)
    zeros = tl.zeros([AT_ONCE, ROWS], tl.float32)
    acc = (zeros,) * MEMBERS
    for at in range(begin, stop, AT_ONCE):
        panel = at + tl.arange(0, AT_ONCE)
        if WIDE:
            panel = panel.to(tl.int64)
        ours = panel < stop
        inside = ours[:, None] & (tile < 2 * K)
        start = panel[:, None] * PANEL_BYTES
        words = as_words(block + 4 * K * TILE_BYTES) + start // 4 + tile * (TILE_BYTES // 4) + row
        a = ()
        for word in tl.static_range(ROW_WORDS):
            a = a + (tl.load(words + word * TILE_ROWS, mask=inside, other=0, eviction_policy="evict_first"),)
        part = (zeros,) * MEMBERS
        total = (tl.zeros([AT_ONCE], tl.float32),) * MEMBERS
        for word in tl.static_range(ROW_WORDS):
            for step in tl.static_range(INPUTS // 2):
                a_even, a_odd = pair(a[word], step, magic, FORMAT)
                sums, total_sum = (), ()
                for number in tl.static_range(MEMBERS):
                    col = panel * PANEL_ROWS + word * INPUTS + 2 * step
                    source = tl.maximum(members[number], 0) * (PANELS * PANEL_ROWS)
                    even, odd = load_pair(inner, source + col, ours, ours, True)
                    total_sum = total_sum + (total[number] + (even + odd),)
                    even = unscale_even(even, step, FORMAT)[:, None]
                    odd = unscale_odd(odd, step, FORMAT)[:, None]
                    sums = sums + (part[number] + a_even * even + a_odd * odd,)
                part, total = sums, total_sum
        sums = ()
        if FORMAT == BF16:
            for number in tl.static_range(MEMBERS):
                sums = sums + (acc[number] + part[number],)
        else:
            factors = side + ((panel // BLOCK_GROUPS)[:, None] * (2 * K) + tile) * SIDE_BYTES
            scale, offset = group(parameters + start + tile * GROUP_BYTES, factors, row, inside, FORMAT)
            for number in tl.static_range(MEMBERS):
                new = acc[number] + part[number] * scale
                if FORMAT == INT4:
                    new -= total[number][:, None] * offset
                sums = sums + (new,)
        acc = sums
    output = tl.program_id(1) * ROWS + line
    for number in tl.static_range(MEMBERS):
        exists = members[number] >= 0
        weight = tl.load(weights + members[number], mask=exists, other=0.0)
        out = partial + (members[number] * SPLITS + split) * HIDDEN + output
        tl.store(out, tl.sum(acc[number], 0) * weight, mask=exists & (output < HIDDEN))
