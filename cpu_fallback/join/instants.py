"""The join of exact instants: two cursors over the sorted times, and no candidate to probe.

A pair qualifies where lo <= t_right - t_left <= hi, so the matches of a base event are one run of
targets. Times are read where they lie if they are in order. Positions and their order are those of
`cpu_fallback.join.event_join`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from coincide.model.compiled import compiled, copy_into
from coincide.model.counters import CountedJoin, JoinCounters, offsets_of
from coincide.model.ordering import stable_order
from coincide.model.remembered import remembered
from coincide.model.threads import blocks_of, kept_busy, run_tasks
from cpu_fallback.join.buffers import group_of, next_group, reach

_RUN = 512
"""Base events placed together, whose places stay in the L1 cache."""


class Instants(NamedTuple):
    """Exact times of one side by (group, time); those of no group last."""

    order: np.ndarray  # int64, shape (n,): rows; empty where all are in order
    times: np.ndarray  # int64, shape (n,): ticks
    offsets: np.ndarray  # int64, shape (groups + 1,): the first of each group


class Sides(NamedTuple):
    """Both sides of a join, as the kernels take them."""

    base: Instants
    targets: Instants
    lo: int
    hi: int


class InstantJoin(CountedJoin):
    """A join of two sides of exact times, ready to be counted and filled.

    Used like an `EventJoin`, but for best matches and aggregates.
    """

    def __init__(
        self,
        left: Any,
        right: Any,
        window: tuple[int, int],
        *,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        self.threads, self._empty = threads, empty
        given = [left] if left is right else [left, right]
        tasks = [partial(_in_order, each, threads) for each in given]
        sides = run_tasks(tasks, kept_busy(len(left) + len(right), threads))
        self._sides = Sides(sides[0], sides[-1], *window)

    @remembered
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""
        return _rows_of(self._sides.base)

    @property
    def row_counts(self) -> np.ndarray:
        """As in `CountedJoin`: where rows are in order no order is made."""
        return super().row_counts if self._sides.base.order.size else self.counts

    @remembered
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,)."""
        return _rows_of(self._sides.targets)

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        counts = np.zeros(self._sides.base.times.size, np.int64)
        return counts, np.array([sum(self._totals(counts, np.empty(0, np.int64))), 0, 0])

    def row_runs(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the matches of each left row begin and end among targets: int64 arrays, shape (n_left,)."""
        order = self._sides.base.order
        counts, firsts = np.zeros((2, self._sides.base.times.size), np.int64)
        self._totals(counts, firsts)
        ends = np.add(firsts, counts, out=counts)
        if not order.size:
            return firsts, ends
        begins_of_rows, ends_of_rows = np.empty((2, order.size), np.int64)
        begins_of_rows[order], ends_of_rows[order] = firsts, ends
        return begins_of_rows, ends_of_rows

    @remembered
    def _of_blocks(self) -> np.ndarray:
        """Where the matches of each of `_blocks` begin among all: int64 array; no event's count is kept."""
        none = np.empty(0, np.int64)
        return offsets_of(np.array(self._totals(none, none), np.int64))

    @property
    def counters(self) -> JoinCounters:
        """As in `CountedJoin`."""
        total = int(self._of_blocks[-1])
        return JoinCounters(total, 0, total)

    def _totals(self, counts: np.ndarray, firsts: np.ndarray) -> list[int]:
        """The matches of each of `_blocks`; if there is room those of each base position, and the first."""
        tasks = [partial(_count, *block, self._sides, counts, firsts) for block in self._blocks]
        return [int(total) for total in run_tasks(tasks, self.threads)]

    @property
    def _blocks(self) -> list[tuple[int, int]]:
        return blocks_of(self._sides.base.times.size, self.threads)

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of the matches of the base positions start ... stop: int64 arrays, shape (matches,)."""
        out = self._room(start, stop), self._room(start, stop)
        _fill(start, stop, self._sides, left_values, right_values, *out)
        return out

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only: int64 array, shape (matches,)."""
        out = self._room(start, stop)
        _fill(start, stop, self._sides, right_values[:0], right_values, out[:0], out)
        return out

    def _room(self, start: int, stop: int) -> np.ndarray:
        return self._empty(int(self.offsets[stop] - self.offsets[start]))

    def all_rows(self, dtype: type[np.signedinteger]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all pairs by base position, in arrays of a type."""
        ends = self._of_blocks
        out = tuple(room_of(self._empty, int(ends[-1]), dtype) for _ in range(2))
        orders = [side.order.astype(dtype) for side in (self._sides.base, self._sides.targets)]
        tasks = [
            partial(_fill, *block, self._sides, *orders, *(each[a:b] for each in out))
            for block, a, b in zip(self._blocks, ends, ends[1:], strict=False)
        ]
        run_tasks(tasks, self.threads)
        return out[0], out[1]


def room_of(
    empty: Callable[[int], np.ndarray], size: int, dtype: type[np.signedinteger]
) -> np.ndarray:
    """Room for this many row numbers, in the memory that is given for int64."""
    width = np.dtype(dtype).itemsize
    return empty(-(-size * width // 8)).view(dtype)[:size]


def _rows_of(side: Instants) -> np.ndarray:
    return side.order if side.order.size else np.arange(side.times.size)


def _in_order(events: Any, threads: int) -> Instants:
    """Times by (group, time), equal ones by row."""
    times, group = events.max_time, events.group
    if group is None:
        offsets = np.array([0, times.size])
        if _is_ascending(times):
            return Instants(np.empty(0, np.int64), times, offsets)
    else:
        group = np.where(group >= 0, group, events.groups)
        offsets = offsets_of(np.bincount(group, minlength=events.groups)[: events.groups])
    order = stable_order(times, group, threads)
    return Instants(order, times[order], offsets)


@compiled
def _is_ascending(times):
    for i in range(1, times.size):  # noqa: SIM110 - a generator is not compiled
        if times[i] < times[i - 1]:
            return False
    return True


class _Walk(NamedTuple):
    """Where a walk over base events is: for each of a run the first target in its window, and beyond it."""

    first: np.ndarray  # int64, shape (run,)
    last: np.ndarray  # int64, shape (run,)
    cursor: (
        np.ndarray
    )  # int64, shape (3,): the places of both ends, and the group, -1 at the beginning


@compiled(allocates=True)
def _new_walk():
    return _Walk(np.empty(_RUN, np.int64), np.empty(_RUN, np.int64), np.full(3, -1, np.int64))


@compiled
def _next_run(sides, walk, start, stop):
    """Place the next run of base events; its end, or `start` where those of no group are left."""
    base, offsets, cursor = sides.base, sides.targets.offsets, walk.cursor
    group = next_group(base, group_of(base, start) if cursor[2] < 0 else cursor[2], start)
    if group == base.offsets.size - 1:
        return start
    if cursor[2] != group:
        cursor[:2] = offsets[group]
        cursor[2] = group
    end = min(stop, start + _RUN, base.offsets[group + 1])
    origins, times, n = base.times[start:end], sides.targets.times, end - start
    cursor[0] = reach(times, cursor[0], offsets[group + 1], origins, sides.lo, walk.first[:n])
    cursor[1] = reach(times, cursor[1], offsets[group + 1], origins, sides.hi + 1, walk.last[:n])
    return end


@compiled(allocates=True)
def _count(start, stop, sides, counts, firsts):
    """The matches of the base events start ... stop; of each, and the first, where there is room."""
    walk, total, i = _new_walk(), np.int64(0), start
    while i < stop:
        end = _next_run(sides, walk, i, stop)
        if end == i:
            break
        for m in range(end - i):
            found = max(walk.last[m] - walk.first[m], np.int64(0))
            total += found
            if counts.size:
                counts[i + m] = found
            if firsts.size:
                firsts[i + m] = walk.first[m]
        i = end
    return total


@compiled(allocates=True)
def _fill(start, stop, sides, left_values, right_values, left_out, right_out):
    """Write the matches of the base events start ... stop; without values their positions."""
    walk, at, i = _new_walk(), np.int64(0), start
    while i < stop:
        end = _next_run(sides, walk, i, stop)
        if end == i:
            break
        for m in range(end - i):
            first, last = walk.first[m], walk.last[m]
            past = at + max(last - first, np.int64(0))
            if left_out.size:
                left_out[at:past] = left_values[i + m] if left_values.size else i + m
            if right_values.size:
                copy_into(right_out[at:past], right_values[first:last])
            else:
                for t in range(past - at):
                    right_out[at + t] = first + t
            at = past
        i = end
    return at
