"""What a join counts of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from coincide.model.remembered import remembered

LARGEST = "rounded", "longest_match", "drift_largest", "latest"
"""How names end whose numbers are not added up: the largest counts."""


class Sums:
    """Counts that add up field by field, and key by key; of those of `LARGEST` the largest one counts."""

    def __add__(self, other: Self) -> Self:
        of_both = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]
        return replace(self, **{name: _sum(name, *each) for name, *each in of_both})  # type: ignore[type-var]


def _sum(name: str, one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
    return max(one, other) if name.endswith(LARGEST) else one + other


@dataclass(frozen=True)
class JoinCounters(Sums):
    """What a join looked at and found."""

    candidates: int = 0  # Pairs in the outer ranges: those not excluded unseen
    probed: int = 0  # Candidates in the shell, decided by the probability formula
    pairs: int = 0  # Qualifying pairs

    @classmethod
    def of_tally(cls, sure: int, probed: int, probed_pairs: int) -> JoinCounters:
        """From the pairs that qualified unseen, the targets probed and those of them that qualified."""
        return cls(candidates=sure + probed, probed=probed, pairs=sure + probed_pairs)


def offsets_of(counts: np.ndarray) -> np.ndarray:
    """Exclusive scan of counts: int64 array, shape (n + 1,)."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def runs_of_about(offsets: np.ndarray, batch_pairs: int) -> Iterator[tuple[int, int]]:
    """Cut base positions into runs of about `batch_pairs` matches."""
    start, n = 0, offsets.size - 1
    while start < n:
        stop = int(np.searchsorted(offsets, offsets[start] + batch_pairs, side="right")) - 1
        stop = min(max(stop, start + 1), start + batch_pairs, n)
        yield start, stop
        start = stop


class RowValues:
    """A column of plain values by row, which is put into the order of a join's events once."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self._ordered: np.ndarray | None = None

    def ordered(self, order: np.ndarray) -> np.ndarray:
        """All values in an order, which is the same at every call."""
        if self._ordered is None:
            self._ordered = self.values[order]
        return self._ordered


class CountedJoin(ABC):
    """A join whose matches are counted once, so that any run of base positions can be filled by itself."""

    @property
    @abstractmethod
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The matches of each base position, and the tally that `JoinCounters.of_tally` takes."""

    @property
    def counts(self) -> np.ndarray:
        """Matches of each base position: int64 array, shape (n_left,)."""
        return self._counted[0]

    @property
    @abstractmethod
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""

    @remembered
    def row_counts(self) -> np.ndarray:
        """Matches of each left row: int64 array, shape (n_left,)."""
        counts = np.empty(self.counts.size, np.int64)
        counts[self.left_order] = self.counts
        return counts

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at and found."""
        return JoinCounters.of_tally(*self._counted[1].tolist())

    @remembered
    def offsets(self) -> np.ndarray:
        """Exclusive scan of the counts: int64 array, shape (n_left + 1,)."""
        return offsets_of(self.counts)

    def chunks(self, batch_pairs: int) -> Iterator[tuple[int, int]]:
        """Runs of base positions of about `batch_pairs` matches: `runs_of_about`."""
        return runs_of_about(self.offsets, batch_pairs)
