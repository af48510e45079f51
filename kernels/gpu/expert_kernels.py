"""The two Triton kernels of an expert: gate and up to the inner activations, down to partial outputs.

`kernels.gpu.experts` starts them and describes their arguments. Programs that share weights are neighbours
(the pair of token and expert is the fastest dimension of the grid), and one program serves up to `MEMBERS`
pairs of one expert with every weight it reads. Sums have a fixed order: results are the same bits each time.
"""

from __future__ import annotations

import triton
import triton.language as tl

from kernels.gpu.words import (
    BF16,
    BLOCK_GROUPS,
    GROUP_BYTES,
    INT4,
    PANEL_ROWS,
    SIDE_BYTES,
    TILE_COLS,
    TILE_ROWS,
    as_halves,
    as_words,
    pair,
    unscale_even,
    unscale_odd,
)


@triton.jit
def _place_of(
    ids: tl.tensor,
    table: tl.tensor,
    expert: tl.tensor,
    place: tl.tensor,
    first_pair: tl.tensor,
    EXPERTS: tl.constexpr,
    STREAMED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """(The expert of a pair, its place): a place of -1 means that there is nothing to do."""
    wanted = tl.load(ids + first_pair)
    if STREAMED:
        found = tl.where(wanted == expert, place, -1)
    else:
        known = (wanted >= 0) & (wanted < EXPERTS)
        found = tl.load(table + tl.where(known, wanted, 0))
        found = tl.where(known, found, -1)
    return wanted, found


@triton.jit
def _members(
    ids: tl.tensor,
    wanted: tl.tensor,
    first_pair: tl.tensor,
    pairs: tl.tensor,
    MEMBERS: tl.constexpr,
    PAIRS: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """(pairs int32 [MEMBERS] served with this one, whether each exists, whether another program serves it).

    The pairs of an expert are divided, in their order, into runs of MEMBERS; the first of a run serves it.
    """
    if MEMBERS == 1:
        members = first_pair + tl.zeros([1], tl.int32)
        return members, members >= 0, False
    index = tl.arange(0, PAIRS)
    same = (tl.load(ids + index, mask=index < pairs, other=-1) == wanted) & (index < pairs)
    rank = tl.cumsum(same.to(tl.int32), 0) - 1
    own_rank = tl.sum(tl.where(index == first_pair, rank, 0))
    ranks = own_rank + tl.arange(0, MEMBERS)
    hit = same[None, :] & (rank[None, :] == ranks[:, None])
    members = tl.sum(tl.where(hit, index[None, :], 0), 1)
    return members, tl.sum(hit.to(tl.int32), 1) > 0, own_rank % MEMBERS != 0


@triton.jit
def _load_pair(
    x: tl.tensor, at: tl.tensor, mask: tl.tensor, PAIRED: tl.constexpr
) -> tuple[tl.tensor, tl.tensor]:
    """Two neighbouring activations as float32; one load where they are bf16 in one aligned word."""
    if PAIRED:
        both = tl.load(x.to(tl.pointer_type(tl.uint32)) + (at >> 1), mask=mask, other=0)
        even = (both << 16).to(tl.float32, bitcast=True)
        odd = (both & 0xFFFF0000).to(tl.float32, bitcast=True)
    else:
        even = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        odd = tl.load(x + at + 1, mask=mask, other=0.0).to(tl.float32)
    return even, odd


@triton.jit(do_not_specialize=["pairs", "expert", "place", "first"])
def gate_up(
    data: tl.tensor,
    x: tl.tensor,
    ids: tl.tensor,
    table: tl.tensor,
    inner: tl.tensor,
    pairs: tl.tensor,
    expert: tl.tensor,
    place: tl.tensor,
    first: tl.tensor,
    HIDDEN: tl.constexpr,
    PANELS: tl.constexpr,
    TOP_K: tl.constexpr,
    EXPERTS: tl.constexpr,
    STRIDE: tl.constexpr,
    FORMAT: tl.constexpr,
    STREAMED: tl.constexpr,
    PAIRED: tl.constexpr,
    PAIRS: tl.constexpr,
    MEMBERS: tl.constexpr,
    UNITS: tl.constexpr,
    WORDS: tl.constexpr,
) -> None:
    """inner[pair, 16 neurons] = silu(w1 x) · (w3 x). Grid: (pairs, 2 · panels of the range).

    A thread takes WORDS words of a row one after the other, a whole group where there are groups; UNITS of
    these are taken at once.
    """
    first_pair = tl.program_id(0)
    tile = tl.program_id(1)
    wanted, found = _place_of(ids, table, expert, place, first_pair, EXPERTS, STREAMED)
    if found < 0:
        return
    members, exist, served = _members(ids, wanted, first_pair, pairs, MEMBERS, PAIRS)
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

    panel = first + tile // 2
    half = tile % 2
    block = data + found.to(tl.int64) * STRIDE
    start = panel * PANEL_BYTES
    gate_words = as_words(block + start + half * (K * TILE_BYTES))
    up_words = as_words(block + start + (2 + half) * (K * TILE_BYTES))
    parameters = block + start + 6 * K * TILE_BYTES
    side = block + PANELS * PANEL_BYTES + (panel * 4 + half) * (COLUMNS * SIDE_BYTES)

    row = tl.arange(0, TILE_ROWS)
    unit = tl.arange(0, UNITS)
    token = (members // TOP_K) * HIDDEN
    gate = tl.zeros([MEMBERS, UNITS, TILE_ROWS], tl.float32)
    up = tl.zeros([MEMBERS, UNITS, TILE_ROWS], tl.float32)
    for begin in range(0, LENGTH, UNITS):
        at = begin + unit
        inside = (at < LENGTH)[:, None]
        gate_part = tl.zeros([MEMBERS, UNITS, TILE_ROWS], tl.float32)
        up_part = tl.zeros([MEMBERS, UNITS, TILE_ROWS], tl.float32)
        total = tl.zeros([MEMBERS, UNITS], tl.float32)
        for word in tl.static_range(WORDS):
            offset = (at * WORDS + word)[:, None] * TILE_ROWS + row[None, :]
            a = tl.load(gate_words + offset, mask=inside, other=0, eviction_policy="evict_first")
            b = tl.load(up_words + offset, mask=inside, other=0, eviction_policy="evict_first")
            for step in tl.static_range(INPUTS // 2):
                col = (at * WORDS + word) * INPUTS + 2 * step
                even, odd = _load_pair(
                    x, token[:, None] + col[None, :], exist[:, None] & (col < HIDDEN)[None, :], PAIRED
                )
                if not PAIRED:
                    odd = tl.where((col + 1 < HIDDEN)[None, :], odd, 0.0)
                if FORMAT == INT4:
                    total += even + odd
                even = unscale_even(even, step, FORMAT)[:, :, None]
                odd = unscale_odd(odd, step, FORMAT)[:, :, None]
                a_even, a_odd = pair(a, step, FORMAT)
                b_even, b_odd = pair(b, step, FORMAT)
                gate_part += a_even[None] * even
                gate_part += a_odd[None] * odd
                up_part += b_even[None] * even
                up_part += b_odd[None] * odd
        if FORMAT == BF16:
            gate += gate_part
            up += up_part
        else:
            gate += _grouped(
                gate_part, total, parameters + half * (K * GROUP_BYTES), side, at, row, inside, FORMAT
            )
            up += _grouped(
                up_part,
                total,
                parameters + (2 + half) * (K * GROUP_BYTES),
                side + 2 * COLUMNS * SIDE_BYTES,
                at,
                row,
                inside,
                FORMAT,
            )
    g = tl.sum(gate, 1)
    u = tl.sum(up, 1)
    silu = g / (1.0 + tl.exp(-g))
    neuron = panel * PANEL_ROWS + half * TILE_ROWS + row
    out = members[:, None] * (PANELS * PANEL_ROWS) + neuron[None, :]
    tl.store(inner + out, silu * u, mask=exist[:, None] & (row >= 0)[None, :])


@triton.jit
def _grouped(
    part: tl.tensor,
    total: tl.tensor,
    parameters: tl.tensor,
    side: tl.tensor,
    at: tl.tensor,
    row: tl.tensor,
    inside: tl.tensor,
    FORMAT: tl.constexpr,
) -> tl.tensor:
    """The product of tiles `at` [UNITS] of a row tile, from that with their values and the sum of x."""
    if FORMAT == INT4:
        scales = parameters + at[:, None] * GROUP_BYTES + row[None, :]
        factors = as_halves(side) + (at // BLOCK_GROUPS)[:, None] * (SIDE_BYTES // 2) + row[None, :]
        return _int4(part, total[:, :, None], scales, factors, inside)
    scale = tl.load(
        as_halves(parameters) + at[:, None] * (GROUP_BYTES // 2) + row[None, :], mask=inside, other=0.0
    )
    return part * scale.to(tl.float32)[None]


@triton.jit
def _int4(
    part: tl.tensor, total: tl.tensor, scales: tl.tensor, factors: tl.tensor, inside: tl.tensor
) -> tl.tensor:
    """(d · s) Σ q x - (e · m) Σ x."""
    s = tl.load(scales, mask=inside, other=0).to(tl.float32)
    m = tl.load(scales + TILE_ROWS, mask=inside, other=0).to(tl.float32)
    d = tl.load(factors, mask=inside, other=0.0).to(tl.float32)
    e = tl.load(factors + TILE_ROWS, mask=inside, other=0.0).to(tl.float32)
    return part * (d * s)[None] - total * (e * m)[None]


@triton.jit(do_not_specialize=["pairs", "expert", "place", "first", "end"])
def down(
    data: tl.tensor,
    ids: tl.tensor,
    weights: tl.tensor,
    table: tl.tensor,
    inner: tl.tensor,
    partial: tl.tensor,
    pairs: tl.tensor,
    expert: tl.tensor,
    place: tl.tensor,
    first: tl.tensor,
    end: tl.tensor,
    HIDDEN: tl.constexpr,
    PANELS: tl.constexpr,
    EXPERTS: tl.constexpr,
    STRIDE: tl.constexpr,
    FORMAT: tl.constexpr,
    STREAMED: tl.constexpr,
    PAIRS: tl.constexpr,
    MEMBERS: tl.constexpr,
    SPLITS: tl.constexpr,
    ROW_TILES: tl.constexpr,
    AT_ONCE: tl.constexpr,
) -> None:
    """partial[pair, split, 16 · ROW_TILES rows] = weight · (w2 inner over the split's panels).

    Grid: (pairs, row tiles / ROW_TILES, SPLITS). A split is a run of panels, the same ones whatever range is
    asked for; AT_ONCE of them are taken at once. A thread has rows of its own: no sum crosses threads before
    the end.
    """
    first_pair = tl.program_id(0)
    split = tl.program_id(2)
    wanted, found = _place_of(ids, table, expert, place, first_pair, EXPERTS, STREAMED)
    if found < 0:
        return
    members, exist, served = _members(ids, wanted, first_pair, pairs, MEMBERS, PAIRS)
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

    block = data + found.to(tl.int64) * STRIDE
    side = block + PANELS * PANEL_BYTES + PANELS * 4 * COLUMNS * SIDE_BYTES
    line = tl.arange(0, ROWS)
    tile = tl.program_id(1) * ROW_TILES + line // TILE_ROWS
    row = line % TILE_ROWS
    exists = (tile < 2 * K)[None, :]

    SHARE: tl.constexpr = (PANELS + SPLITS - 1) // SPLITS
    begin = tl.maximum(split * SHARE, first)
    stop = tl.minimum(split * SHARE + SHARE, end)
    acc = tl.zeros([MEMBERS, AT_ONCE, ROWS], tl.float32)
    for at in range(begin, stop, AT_ONCE):
        panel = at + tl.arange(0, AT_ONCE)
        inside = (panel < stop)[:, None] & exists
        used = exist[:, None] & (panel < stop)[None, :]
        start = panel[:, None] * PANEL_BYTES
        words = as_words(block + 4 * K * TILE_BYTES)
        offset = start // 4 + (tile * (TILE_BYTES // 4) + row)[None, :]
        source = members[:, None] * (PANELS * PANEL_ROWS) + panel[None, :] * PANEL_ROWS
        part = tl.zeros([MEMBERS, AT_ONCE, ROWS], tl.float32)
        total = tl.zeros([MEMBERS, AT_ONCE], tl.float32)
        for word in tl.static_range(ROW_WORDS):
            a = tl.load(
                words + offset + word * TILE_ROWS, mask=inside, other=0, eviction_policy="evict_first"
            )
            for step in tl.static_range(INPUTS // 2):
                even, odd = _load_pair(inner, source + (word * INPUTS + 2 * step), used, False)
                if FORMAT == INT4:
                    total += even + odd
                a_even, a_odd = pair(a, step, FORMAT)
                part += a_even[None] * unscale_even(even, step, FORMAT)[:, :, None]
                part += a_odd[None] * unscale_odd(odd, step, FORMAT)[:, :, None]
        if FORMAT == BF16:
            acc += part
        else:
            parameters = block + 6 * K * TILE_BYTES + 4 * K * GROUP_BYTES
            if FORMAT == INT4:
                entry = (panel // BLOCK_GROUPS)[:, None] * (2 * K) + tile[None, :]
                scales = parameters + start + (tile * GROUP_BYTES + row)[None, :]
                factors = as_halves(side) + entry * (SIDE_BYTES // 2) + row[None, :]
                acc += _int4(part, total[:, :, None], scales, factors, inside)
            else:
                scales = as_halves(parameters) + start // 2 + (tile * (GROUP_BYTES // 2) + row)[None, :]
                acc += part * tl.load(scales, mask=inside, other=0.0).to(tl.float32)[None]
    result = tl.sum(acc, 1)
    weight = tl.load(weights + members, mask=exist, other=0.0)
    output = tile * TILE_ROWS + row
    out = (members * SPLITS + split)[:, None] * HIDDEN + output[None, :]
    tl.store(partial + out, result * weight[:, None], mask=exist[:, None] & (output < HIDDEN)[None, :])
