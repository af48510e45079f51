"""Several sequences in one KV cache: each has a table of the cache rows where its tokens lie.

Beams of one prompt share its rows, and becoming another beam's continuation moves indices, never keys.
Tables of rows in place of contiguous memory are PagedAttention's idea (arXiv 2309.06180), here with pages of
one token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from engine.errors import GenerationError
from engine.kvcache import KVCache


@dataclass(frozen=True)
class PromptRows:
    """Consecutive rows of the pool, from `first`, taken for a prompt that forward reads into `cache`."""

    first: int
    cache: KVCache


class SequenceBatch:
    """Up to `sequences` token sequences that are continued together, one token each per step.

    `pool` is a cache whose positions serve as rows, whatever its own `length` says. Two tables lie on the
    model's device and are never reallocated: `rows`, int32 [sequences, capacity], the row of each position of
    each sequence, and `positions`, int32 [sequences], where each sequence's newest token is or comes during a
    step. The live sequences are the first `size`; the others' positions are -1.

    A row is free when no sequence refers to it. Free rows are taken from the lowest on, so that the rows in
    use stay close together: below the highest used one, all have been written at some time.
    """

    def __init__(self, pool: KVCache, sequences: int) -> None:
        device = pool.data.device
        self.pool = pool
        self.size = 0
        self.rows = torch.zeros(sequences, pool.capacity, dtype=torch.int32, device=device)
        self.positions = torch.full((sequences,), -1, dtype=torch.int32, device=device)
        on_host = device.type == "cpu"  # then both are the same memory
        self._rows: npt.NDArray[np.int32] = self.rows.numpy() if on_host else self.rows.cpu().numpy()
        self._lengths = np.zeros(sequences, dtype=np.int64)
        self._references = np.zeros(pool.capacity, dtype=np.int64)
        self._claimed: PromptRows | None = None
        self._in_step = False

    @classmethod
    def after(cls, cache: KVCache, sequences: int) -> SequenceBatch:
        """One sequence, of the tokens in `cache`; its free rows are used for what follows."""
        batch = cls(cache, sequences)
        batch.restart(cache.length)
        return batch

    def restart(self, tokens: int) -> None:
        """Give all sequences up; if `tokens` is above 0, those in the pool's first rows are the only one."""
        self.size = 0
        self.positions[:] = -1
        self._references[:] = 0
        self._claimed = None
        self._in_step = False
        if tokens:
            self._append(0, tokens)

    @property
    def capacity(self) -> int:
        """Rows of the pool, and the most tokens of one sequence."""
        return self.pool.capacity

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many tokens each live sequence has, [size]; those of an unfinished step do not count."""
        return self._lengths[: self.size].copy()

    @property
    def free_rows(self) -> int:
        """Rows that hold nothing."""
        return int(np.count_nonzero(self._references == 0))

    @property
    def used_rows(self) -> int:
        """One more than the highest row that holds something."""
        used = np.flatnonzero(self._references)
        return int(used[-1]) + 1 if len(used) else 0

    def claim(self, tokens: int) -> PromptRows:
        """Take consecutive rows for a prompt; what is in use is moved together if no gap is wide enough.

        One claim at a time: it ends with `add` or `release`.

        Raises:
            GenerationError: fewer rows are free.
        """
        if self._claimed is not None:
            raise ValueError("the rows claimed before have not been added or released")
        self._abandon_step()
        self._check_room(tokens)
        first = _first_run(self._references == 0, tokens)
        if first is None:
            first = self._compact()
        self._references[first : first + tokens] = 1
        self._claimed = PromptRows(first, self.pool.part(first, tokens))
        return self._claimed

    def add(self, prompt: PromptRows) -> int:
        """Make the tokens in a claim's cache a new sequence, the last; returns its index."""
        length = prompt.cache.length
        self.release(prompt)
        return self._append(prompt.first, length)

    def release(self, prompt: PromptRows) -> None:
        """Give a claim's rows back."""
        if prompt is not self._claimed:
            raise ValueError("these rows are not claimed")
        self._claimed = None
        self._references[prompt.first : prompt.first + prompt.cache.capacity] = 0
        # Attention passes over rows that are in nobody's table, but what it passes over must be numbers.
        prompt.cache.data[:, :, :, prompt.cache.length :].zero_()

    def begin_step(self) -> None:
        """Give every live sequence a row for its next token; a step that was begun and not ended goes on.

        Raises:
            GenerationError: too few rows are free; nothing has changed then.
        """
        if self._claimed is not None:
            raise ValueError("a prompt is being read")
        if self._in_step:
            return
        self._check_room(self.size)
        at, count = self._lengths[: self.size], self.size
        new = np.flatnonzero(self._references == 0)[:count]
        self._references[new] = 1
        self._rows[np.arange(count), at] = new
        self._in_step = True
        device = self.rows.device
        if device.type == "cpu":
            self.positions[:count] = torch.from_numpy(at)
            return
        where, rows = torch.from_numpy(np.stack((at, new))).to(device)
        self.rows[torch.arange(count, device=device), where] = rows.int()
        self.positions[:count] = where

    def end_step(self) -> None:
        """The keys and values of the step's tokens are in their rows: they count from now on."""
        if not self._in_step:
            raise ValueError("no step has begun")
        self._in_step = False
        self._lengths[: self.size] += 1

    def reorder(self, parents: Sequence[int]) -> None:
        """Sequence i becomes a copy of what sequence `parents[i]` is now.

        A parent may come several times, or never, and the number of live sequences becomes that of `parents`.
        """
        chosen = np.asarray(parents, dtype=np.int64)
        count, before = len(chosen), self.size
        if count > len(self._rows) or (count and not 0 <= chosen.min() <= chosen.max() < before):
            raise ValueError(f"{parents} cannot be made of {before} sequences in {len(self._rows)} places")
        self._abandon_step()
        if np.array_equal(chosen, np.arange(before)):
            return
        change = np.bincount(chosen, minlength=before) - 1
        for index in np.flatnonzero(change):
            self._references[self._rows[index, : self._lengths[index]]] += change[index]
        self.size = count
        self._lengths[:count] = self._lengths[chosen]
        longest = int(self._lengths[:count].max(initial=0))
        self._rows[:count, :longest] = self._rows[chosen, :longest]
        if self.rows.device.type != "cpu":
            moved = self.rows[torch.from_numpy(chosen).to(self.rows.device), :longest]
            self.rows[:count, :longest] = moved
        self.positions[count:] = -1

    def straighten(self, index: int, length: int) -> None:
        """Bring the first `length` tokens of a sequence into rows 0, 1, 2, …, and give up all sequences.

        After this the pool is an ordinary cache of that many tokens; setting its `length` is the owner's.
        """
        rows = self._rows[index, : min(length, int(self._lengths[index]))]
        if len(rows) < length:
            raise ValueError(f"sequence {index} has fewer than {length} tokens")
        self._move(rows)
        self.restart(0)

    def _append(self, first: int, length: int) -> int:
        """A new sequence in rows that lie one after the other; returns its index."""
        index = self.size
        if index == len(self._rows):
            raise ValueError(f"all {index} places of the batch are taken")
        self._abandon_step()
        rows = np.arange(first, first + length, dtype=np.int32)
        self._rows[index, :length] = rows
        if self.rows.device.type != "cpu":
            self.rows[index, :length] = torch.from_numpy(rows).to(self.rows.device)
        self._references[rows] += 1
        self._lengths[index] = length
        self.size += 1
        return index

    def _abandon_step(self) -> None:
        """Give the rows of a step back that was begun and not ended."""
        if self._in_step:
            self._in_step = False
            rows = self._rows[np.arange(self.size), self._lengths[: self.size]]
            self._references[rows] = 0
            self.pool.data[:, :, :, torch.from_numpy(rows).long()] = 0  # numbers, as in `release`

    def _check_room(self, rows: int) -> None:
        free = self.free_rows
        if rows > free:
            raise GenerationError(
                "What is written at the same time does not fit into the model's context.",
                why=f"It holds {self.capacity} tokens in all, {free} places are free, and {rows} are needed.",
                action="Ask for fewer answers or beams, for shorter ones, or load with a longer context.",
            )

    def _compact(self) -> int:
        """Move the rows in use together, to the front, in their order; returns how many they are."""
        used = np.flatnonzero(self._references)
        self._move(used)
        new = np.zeros(self.capacity, dtype=np.int32)
        new[used] = np.arange(len(used))
        self._rows[: self.size] = new[self._rows[: self.size]]
        if self.rows.device.type != "cpu":
            self.rows[: self.size] = torch.from_numpy(self._rows[: self.size]).to(self.rows.device)
        references = self._references[used]
        self._references[:] = 0
        self._references[: len(used)] = references
        return len(used)

    def _move(self, rows: npt.NDArray[np.integer]) -> None:
        """Copy keys and values from `rows` into rows 0, 1, 2, …, layer by layer."""
        apart = np.flatnonzero(rows != np.arange(len(rows)))
        if not len(apart):
            return
        start, end = int(apart[0]), len(rows)
        source = torch.from_numpy(rows[start:].astype(np.int64)).to(self.pool.data.device)
        for layer in self.pool.data:
            layer[:, :, start:end] = layer.index_select(2, source)


def _first_run(free: npt.NDArray[np.bool_], length: int) -> int | None:
    """Where the first `length` free rows in a row begin."""
    edges = np.diff(np.concatenate(([0], free.view(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    wide = np.flatnonzero(ends - starts >= length)
    return int(starts[wide[0]]) if len(wide) else None
