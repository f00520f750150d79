"""A join whose left events come in the order of their rows, whatever order it has found them in."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from coincide.engine.in_order import in_order
from coincide.model.results import CountedJoin, JoinCounters
from cpu_fallback.join.filtering import runs_taken

_PAIRS = 1 << 18
"""That are looked up in one go."""
_RUN = 1 << 14
"""Left events whose best partners are sought in one go."""


def in_order_of_left(join: Any, threads: int) -> Any:
    """A join like a given one whose base positions are left rows."""
    order = join.left_order
    return join if (order[1:] > order[:-1]).all() else OrderedJoin(join, threads)


class OrderedJoin(CountedJoin):
    """Used like the join, of either backend, from which all its pairs come.

    It keeps the target position of each pair.
    """

    def __init__(self, join: Any, threads: int) -> None:
        self._join, self._threads = join, threads
        self.right_order = join.right_order
        self.left_order = np.arange(join.left_order.size)
        # The base position, in the join, of each left row.
        self._place = np.empty(join.left_order.size, np.int64)
        self._place[join.left_order] = self.left_order
        self._lock = Lock()
        self._found: np.ndarray | None = None
        self._bests: tuple[np.ndarray, np.ndarray, JoinCounters] | None = None

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        return self._join.counts[self._place], np.zeros(3, np.int64)

    @property
    def counters(self) -> JoinCounters:
        """As of the join."""
        found: JoinCounters = self._join.counters
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._join, name)

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As of the join, and so is all that follows."""
        left = np.repeat(left_values[start:stop], self.counts[start:stop])
        return left, self.partners(start, stop, right_values)

    def partners(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:  # noqa: D102
        firsts, counts = self._join.offsets[self._place[start:stop]], self.counts[start:stop]
        return runs_taken(right_values, self._targets, firsts, counts)

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """As of a causality join."""
        rows = self.pairs(start, stop, self.left_order, self.right_order)
        return *self.pairs(start, stop, left_values, right_values), *self._join.measured(*rows)

    def best(  # noqa: D102
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        best, merits, counters = self._best_of_all(ranks)
        place = self._place[start:stop]
        return best[place], merits[place], JoinCounters() if start else counters

    @property
    def _targets(self) -> np.ndarray:
        """Target position of each pair, in the order of the join."""
        with self._lock:
            if self._found is None:
                join, positions = self._join, np.arange(self.right_order.size)
                found = np.empty(int(join.offsets[-1]), np.int64)
                runs = list(join.chunks(_PAIRS))
                parts = in_order(lambda run: [join.partners(*run, positions)], runs, self._threads)
                for (start, stop), part in zip(runs, parts, strict=True):
                    found[join.offsets[start] : join.offsets[stop]] = part
                self._found = found
            return self._found

    def _best_of_all(self, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        with self._lock:
            if self._bests is not None:
                return self._bests
            n = self.left_order.size
            runs = ((start, min(start + _RUN, n)) for start in range(0, n, _RUN))
            parts = list(in_order(lambda run: [self._join.best(*run, ranks)], runs, self._threads))
            best, merits = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
            self._bests = best, merits, sum((part[2] for part in parts), JoinCounters())
            return self._bests
