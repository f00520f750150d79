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


@dataclass(frozen=True, eq=False)
class RankedBest:
    """Best matches by probability; ranks are by target position, of targets equal in all else."""

    source: RankedSource
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


class OrderedBest:
    """As `RankedBest`, by left rows in place of base positions: all are found at the first question."""

    def __init__(self, source: RankedSource, ranks: np.ndarray, threads: int) -> None:
        self._source, self._ranks, self._threads = source, ranks, threads
        self.left_order, self.at_once = np.arange(source.left_order.size), source.best_rows
        self._lock = Lock()
        self._found: tuple[np.ndarray, JoinCounters] | None = None

    def of(self, start: int, stop: int) -> tuple[np.ndarray, Rows]:
        """As `BestMatches`, and so is all that follows."""
        best = self._of_all()[0][start:stop]
        found = np.flatnonzero(best >= 0)
        return found, (start + found, self._source.right_order[best[found]])

    @property
    def counters(self) -> JoinCounters:  # noqa: D102
        return self._of_all()[1]

    def _of_all(self) -> tuple[np.ndarray, JoinCounters]:
        """The target position of each left row, or -1, and what was looked at."""
        with self._lock:
            if self._found is None:
                source, n = self._source, self.left_order.size
                step = self.at_once
                runs = [(start, min(start + step, n)) for start in range(0, n, step)]
                best, counters = np.full(n, -1), JoinCounters()
                parts = in_order(lambda run: [source.best(*run, self._ranks)], runs, self._threads)
                for run, (targets, _, looked_at) in zip(runs, parts, strict=True):
                    best[source.left_order[slice(*run)]] = targets
                    counters += looked_at
                self._found = best, counters
            return self._found
