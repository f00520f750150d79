"""The join of events on a GPU: sort once, count, scan, fill in chunks. Answers as `cpu_fallback.join`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coincide.counted import CountedJoin
from coincide.results import JoinCounters, runs_of_about
from coincide.timestamps.protocol import Events, PairModel
from gpu_kernels.device.arrays import array_module, on_host, tuple_on_device
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.residents import Residents
from gpu_kernels.device.transfers import ROOM, current
from gpu_kernels.device.usable import TURN as _DEVICE
from gpu_kernels.join.blocks import Block
from gpu_kernels.join.buffers import ordered
from gpu_kernels.join.candidates import find_best
from gpu_kernels.join.preparation import prepared
from gpu_kernels.kernels import placement
from gpu_kernels.kernels.compilation import launch_each

_PAIRS_AHEAD = 1 << 22
_PAIRS_AT_ONCE = ROOM // 8
"""Matches of a block: a column fits into a pinned buffer, and leaves while the next block is filled."""

_FILLED_KEPT = 2
"""Threads of the caller may ask for a batch when another has asked for one further on."""

_Values = tuple[np.ndarray | None, np.ndarray]
"""What to write for base events, if anything, and for targets."""


class _Filled(NamedTuple):
    """The matches of the base positions start ... stop, in host memory."""

    start: int
    stop: int
    values: _Values
    left: np.ndarray
    right: np.ndarray

    def holds(self, start: int, stop: int, values: _Values) -> bool:
        """Whether these are the matches of start ... stop, written with these very arrays."""
        same = all(mine is other for mine, other in zip(self.values, values, strict=True))
        return same and self.start <= start and stop <= self.stop


class EventJoin(CountedJoin):
    """A join of two sides, sorted on the device and ready to be counted and filled.

    Parameters and results are those of `cpu_fallback.EventJoin`, in the same order and to the bit.
    All arrays that it returns are in host memory.

    Parameters
    ----------
    left, right : Events
    model : PairModel
    classes : int or None
    threads : int
        Has no effect. Several threads may call; they take turns.
    empty : callable

    Raises
    ------
    DeviceMemoryError
        Here, if the device cannot hold both sides; later, if it cannot hold one event's matches.
    """

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
        self._residents = Residents()
        self._filled: deque[_Filled] = deque(maxlen=_FILLED_KEPT)
        with _DEVICE, translated("both sides of the join"):
            bases, targets = ordered(left, right)
            self._left_order, self._right_order, self.bands, self._banded = prepared(
                bases, targets, left.groups, model, classes
            )

    @cached_property
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""
        with _DEVICE, translated():
            return self._residents.known(on_host(self._left_order), self._left_order)

    @cached_property
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,)."""
        with _DEVICE, translated():
            return self._residents.known(on_host(self._right_order), self._right_order)

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The counts, and the tally of all blocks."""
        counts, tally = np.empty(self._left_order.size, np.int64), np.zeros(3, np.int64)

        def count(start: int, stop: int) -> None:
            block = Block(self._banded, start, stop)
            found, matches = block.tally, block.counts
            fetch(matches, counts[start:stop])
            np.add(tally, found, out=tally)

        with _DEVICE:
            if "_counted" in vars(self):  # another thread was first
                return self._counted
            with translated(), current().fetching() as fetch:
                for start, stop in self._banded.blocks(0, counts.size):
                    in_parts(count, start, stop)
            vars(self)["_counted"] = counts, tally
        return counts, tally

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The matches of the base positions start ... stop.

        Parameters
        ----------
        start, stop : int
        left_values, right_values : int64 arrays
            What to write for an event, by base and target position. The same arrays, given again, are
            not copied to the device again: they must not change.

        Returns
        -------
        two int64 arrays, shape (matches,)
        """
        return self._fill(start, stop, (left_values, right_values))

    def partners(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only: int64 array, shape (matches,)."""
        return self._fill(start, stop, (None, right_values))[1]

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable partner of the base positions start ... stop. Needs no counts.

        Parameters
        ----------
        start, stop : int
        ranks : int64 array, shape (n_right,)
            Order for ties of probability and midpoint distance, by target position. As `pairs`, must
            not change.

        Returns
        -------
        int64 array, shape (stop - start,)
            Target position, -1 for none.
        float64 array, shape (stop - start,)
            Its merit: `coincide.timestamps.protocol.Rule`; NaN for none.
        JoinCounters
            Of these positions.
        """
        best, merits = np.full(stop - start, -1, np.int64), np.full(stop - start, np.nan)
        tally = np.zeros(3, np.int64)

        def choose(a: int, b: int) -> None:
            positions, places = self._residents.get(ranks, _ranked)
            chosen, highest, found = find_best(self._banded, places, a, b)
            some = np.flatnonzero(highest > -np.inf)
            best[a - start + some] = positions[chosen[some]]
            merits[a - start + some] = highest[some]
            np.add(tally, found, out=tally)

        with _DEVICE, translated():
            for a, b in self._banded.blocks(start, stop):
                in_parts(choose, a, b)
        return best, merits, JoinCounters.of_tally(*tally.tolist())

    def _fill(self, start: int, stop: int, values: _Values) -> tuple[np.ndarray, np.ndarray]:
        offsets = self.offsets
        with _DEVICE:
            filled = next((f for f in self._filled if f.holds(start, stop, values)), None)
            if filled is None:
                filled = self._fill_ahead(start, stop, values)
                self._filled.append(filled)
        rows = slice(offsets[start] - offsets[filled.start], offsets[stop] - offsets[filled.start])
        return filled.left[rows], filled.right[rows]

    def _fill_ahead(self, start: int, stop: int, values: _Values) -> _Filled:
        """Fill start ... stop, and some way on: a batch of Spark's is too small to keep a GPU busy."""
        offsets = self.offsets
        ahead = int(np.searchsorted(offsets, offsets[start] + _PAIRS_AHEAD, side="right")) - 1
        stop = max(stop, ahead)
        matches = int(offsets[stop] - offsets[start])
        both = values[0] is not None
        left_out, right_out = self._empty(matches if both else 0), self._empty(matches)

        def fill(a: int, b: int) -> None:
            resident = [None if array is None else self._residents.get(array) for array in values]
            left, right = Block(self._banded, a, b).fill(resident[0], resident[1])
            rows = slice(offsets[a] - offsets[start], offsets[b] - offsets[start])
            if left is not None:
                fetch(left, left_out[rows])
            fetch(right, right_out[rows])

        with translated(), current().fetching() as fetch:
            for a, b in self._blocks(start, stop):
                in_parts(fill, a, b)
        return _Filled(start, stop, values, left_out, right_out)

    def _blocks(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Blocks of a bounded number of entries, and of matches unless of one event."""
        for a, b in runs_of_about(self.offsets[start : stop + 1], _PAIRS_AT_ONCE):
            yield from self._banded.blocks(start + a, start + b)


def _ranked(ranks: Any) -> tuple[np.ndarray, Any]:
    """The target at each place of an order, in host memory, and the place of each target.

    Equal ranks are told apart by position, which is what the CPU does.
    """
    xp = array_module()
    positions = xp.argsort(ranks, kind="stable")
    places = take(ranks.size, np.int64)
    places[positions] = xp.arange(ranks.size, dtype=np.int64)
    return on_host(positions), places


def event_probabilities(
    left: Events,
    left_rows: np.ndarray,
    right: Events,
    right_rows: np.ndarray,
    model: PairModel,
) -> np.ndarray:
    """Satisfaction probabilities of given pairs: float64 array, shape (n,)."""
    out = np.empty(left_rows.size)

    def evaluate(start: int, stop: int) -> None:
        rule = tuple_on_device(model.rule)
        given = left.times.of(left_rows[start:stop]), right.times.of(right_rows[start:stop])
        arrived = (
            type(times)(*sent) for times, sent in zip(given, current().send(*given), strict=True)
        )
        columns = [column for times in arrived for column in (times.keys(), times.shapes())]
        found = take(stop - start, np.float64)
        launch_each(placement.pair_probabilities, stop - start, rule, *columns, found)
        on_host(found, out[start:stop])

    with _DEVICE:
        in_parts(evaluate, 0, out.size)
    return out
