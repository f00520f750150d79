"""The best match of each left event: one pair a base position, or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

import numpy as np

from coincide.engine.pairs.source import RankedSource, Rows
from coincide.model.counters import JoinCounters
from coincide.model.threads import in_order


class BestMatches(Protocol):
    """What finds the best matches of runs of base positions, for several threads at a time."""

    @property
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""

    @property
    def at_once(self) -> int | None:
        """Base positions to ask for at once; None where all pairs are counted for it."""

    def of(self, start: int, stop: int, /) -> tuple[np.ndarray, Rows]:
        """Which of the base positions start ... stop have a match, from start on, and these pairs."""

    @property
    def counters(self) -> JoinCounters:
        """What was looked at for all of them."""


class BestSource(Protocol):
    """As much of a `RankedSource` as its best matches need."""

    @property
    def left_order(self) -> np.ndarray:
        """As `RankedSource`, and so is all that follows."""

    @property
    def right_order(self) -> np.ndarray: ...  # noqa: D102

    @property
    def best_rows(self) -> int: ...  # noqa: D102

    def best(  # noqa: D102
        self, start: int, stop: int, ranks: np.ndarray, /
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]: ...


@dataclass(frozen=True, eq=False)
class RankedBest:
    """Best matches by probability; ranks are by target position, of targets equal in all else."""

    source: BestSource
    ranks: np.ndarray
    _counted: list[JoinCounters] = field(default_factory=list)

    @property
    def left_order(self) -> np.ndarray:
        """As `BestMatches`, and so is all that follows."""
        return self.source.left_order

    @property
    def at_once(self) -> int:  # noqa: D102
        return self.source.best_rows

    def of(self, start: int, stop: int) -> tuple[np.ndarray, Rows]:  # noqa: D102
        source = self.source
        best, _, counters = source.best(start, stop, self.ranks)
        self._counted.append(counters)
        found = np.flatnonzero(best >= 0)
        return found, (source.left_order[start + found], source.right_order[best[found]])

    @property
    def counters(self) -> JoinCounters:  # noqa: D102
        return sum(self._counted, JoinCounters())


_RUN = 1 << 14
"""Left events whose best matches are sought in one go."""


class OrderedBest:
    """The best matches of a join by left rows, in place of its base positions."""

    def __init__(self, join: RankedSource, threads: int) -> None:
        self._join, self._threads = join, threads
        self.left_order = np.arange(join.left_order.size)
        self.right_order, self.best_rows = join.right_order, join.best_rows
        self._place = places_of(join.left_order)
        self._lock = Lock()
        self._found: tuple[np.ndarray, np.ndarray, JoinCounters] | None = None

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """As `RankedSource`."""
        best, merits, counters = self._of_all(ranks)
        place = self._place[start:stop]
        return best[place], merits[place], JoinCounters() if start else counters

    def _of_all(self, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        with self._lock:
            if self._found is not None:
                return self._found
            n = self.left_order.size
            runs = ((start, min(start + _RUN, n)) for start in range(0, n, _RUN))
            parts = list(in_order(lambda run: [self._join.best(*run, ranks)], runs, self._threads))
            best, merits = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
            self._found = best, merits, sum((part[2] for part in parts), JoinCounters())
            return self._found


def places_of(order: np.ndarray) -> np.ndarray:
    """Where each row is in an order of all rows: int64 array."""
    found = np.empty(order.size, np.int64)
    found[order] = np.arange(order.size)
    return found
