"""The join of events on the CPU: sort once, count, scan, fill in chunks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from coincide.model.class_choice import HostPopulation
from coincide.model.classes import checked
from coincide.model.counters import CountedJoin, JoinCounters
from coincide.model.range_sums import Found, Prepared, found_of
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT
from coincide.model.threads import run_tasks, step, tally_of_blocks
from coincide.model.timestamps.protocol import DecidedByEnds, Events, PairModel
from cpu_fallback.aggregates.kernels import Aggregates
from cpu_fallback.join import kernels, scan
from cpu_fallback.join.buffers import Sides, base_buffer, ordered, target_buffer
from cpu_fallback.join.instants import room_of

_FIRST_STEP, _LAST_STEP = 16, 1024
_STEP_SECONDS = 0.02
_PAIRS_OF_A_RUN = 1 << 20


class EventJoin(CountedJoin):
    """A join of two sides, sorted and ready to be counted and filled.

    Nothing is evaluated before it is asked for; `counts` is evaluated once. Threads may call `pairs`,
    `matches` and `best` of several runs at the same time.
    """

    best_rows: ClassVar[int] = 1 << 14
    """Base events to ask for the best matches of at once."""

    def __init__(
        self,
        left: Events,
        right: Events,
        model: PairModel,
        *,
        classes: int | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        self.threads = threads
        self._empty = empty
        bounds = model.end_bounds(left, right) if isinstance(model, DecidedByEnds) else None
        self._kernels: Any = kernels if bounds is None else scan
        self._sides: Any = (
            banded_sides(left, right, model, classes, threads)
            if bounds is None
            else scan.scanned_sides(left, right, bounds, model.rule, threads)
        )

    @property
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""
        return self._sides.base.order

    @property
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,)."""
        return self._sides.targets.order

    @property
    def bands(self) -> np.ndarray:
        """Bounds on the difference of keys by classes; a scan of starts has none."""
        return self._sides.bands

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The counts, and the tally of all blocks."""
        counts = np.zeros(self.left_order.size, np.int64)
        count = partial(self._kernels.count_block, sides=self._sides, counts=counts)
        return counts, tally_of_blocks(count, counts.size, self.threads)

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of the matches of the base positions start ... stop: int64 arrays, shape (matches,)."""
        return self._fill(start, stop, left_values, right_values, True)

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only: int64 array, shape (matches,)."""
        return self._fill(start, stop, right_values[:0], right_values, False)[1]

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable match of the base positions start ... stop, and its merit. Needs no counts."""
        # Target positions, -1 for none, and merits, NaN for none; `ranks` is by target position.
        best, merits = np.empty(stop - start, np.int64), np.empty(stop - start)
        tally = np.zeros(3, np.int64)
        for a, b in _in_steps(start, stop, _FIRST_STEP, _LAST_STEP):
            found = best[a - start : b - start], merits[a - start : b - start]
            tally += self._kernels.best_block(a, b, self._sides, ranks, *found)
        return best, merits, JoinCounters.of_tally(*tally.tolist())

    @property
    def has_ranges(self) -> bool:
        """Whether `aggregated` may be asked for: not of a scan of starts."""
        return self._kernels is kernels

    def aggregated(self, start: int, stop: int, prepared: Prepared) -> tuple[Found, JoinCounters]:
        """Aggregates of the matches of the base positions start ... stop. Needs no counts."""
        found = found_of(stop - start, prepared.before.shape[1], prepared.codes.shape[0])
        tally = np.zeros(3, np.int64)
        for a, b in _in_steps(start, stop, _LAST_STEP, stop - start):
            part = Found(*(each[a - start : b - start] for each in found))
            tally += kernels.walk_block(a, b, self._sides, Aggregates(prepared, part))
        return found, JoinCounters.of_tally(*tally.tolist())

    def all_rows(self, dtype: type[np.signedinteger]) -> tuple[np.ndarray, np.ndarray]:
        """The rows of all pairs by base position, in arrays of a type."""
        offsets = self.offsets
        orders = self.left_order.astype(dtype), self.right_order.astype(dtype)
        size = int(offsets[-1])
        out = room_of(self._empty, size, dtype), room_of(self._empty, size, dtype)

        def fill(start: int, stop: int) -> None:
            of_run = slice(offsets[start], offsets[stop])
            given = *orders, *(each[of_run] for each in out)
            self._kernels.fill_block(start, stop, self._sides, offsets, offsets[start], *given)

        run_tasks([partial(fill, *run) for run in self.chunks(_PAIRS_OF_A_RUN)], self.threads)
        return out

    def _fill(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray, both: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        origin = int(self.offsets[start])
        matches = int(self.offsets[stop]) - origin
        left_out, right_out = self._empty(matches if both else 0), self._empty(matches)
        values = (left_values, right_values, left_out, right_out)
        self._kernels.fill_block(start, stop, self._sides, self.offsets, origin, *values)
        return left_out, right_out


def _in_steps(start: int, stop: int, size: int, largest: int) -> Iterator[tuple[int, int]]:
    """Runs between which work can be interrupted: a burst has a great many candidates."""
    a = start
    while a < stop:
        b, begun = min(a + size, stop), time.perf_counter()
        yield a, b
        step(b - a)
        is_quick = time.perf_counter() - begun < _STEP_SECONDS
        size = min(2 * size, largest) if is_quick else max(1, size // 2)
        a = b


def banded_sides(
    left: Events, right: Events, model: PairModel, classes: int | None, threads: int
) -> Sides:
    """Sort both sides, and put them into classes; a stream that is joined with itself is sorted once."""
    sides = [left] if left is right else [left, right]
    in_order = run_tasks([partial(ordered, side, threads) for side in sides], threads)
    bases, targets = in_order[0], in_order[-1]
    k1, k2 = checked(
        model.choose_classes(
            HostPopulation(bases.keys, bases.shapes, left.group),
            HostPopulation(targets.keys, targets.shapes, right.group),
            left.groups,
            classes,
        )
    )
    base, target = run_tasks(
        [partial(base_buffer, left, bases, k1), partial(target_buffer, right, targets, k2)], threads
    )
    return Sides(base, target, model.bands(LEFT, k1, k2), model.rule)


def _of_pairs(
    kernel: Callable[..., Any],
    left: Events,
    left_rows: np.ndarray,
    right: Events,
    right_rows: np.ndarray,
    model: PairModel,
) -> Any:
    times = left.times.of(left_rows), right.times.of(right_rows)
    return kernel(model.rule, *times, left_rows.size)


event_probabilities = partial(_of_pairs, kernels.pair_probabilities)
"""Satisfaction probabilities of given pairs: float64 array, shape (n,)."""
event_decisions = partial(_of_pairs, kernels.pair_decisions)
"""Which of given pairs qualify: bool array, shape (n,)."""
event_merits = partial(_of_pairs, kernels.pair_merits)
"""By what given pairs are ranked: merits, float64, and distances, uint64, both of shape (n,)."""
