"""Where pairs come from: what joins are to all that asks for their pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from coincide.model.counters import JoinCounters, RowValues
from coincide.model.range_sums import Found, Prepared
from coincide.model.sides import LEFT

Rows = tuple[np.ndarray, np.ndarray]
"""Left and right rows of pairs: int64 arrays, shape (pairs,)."""


class PairSource(Protocol):
    """The pairs of two sides: joins of either backend, and what is used in place of one.

    A left event has a base position, a right one a target position. Pairs are counted once. Then those
    of any run of base positions can be had by themselves, by several threads at a time.
    """

    @property
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""

    @property
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,) or less."""

    @property
    def counts(self) -> np.ndarray:
        """Matches of each base position: int64 array, shape (n_left,)."""

    @property
    def row_counts(self) -> np.ndarray:
        """Matches of each left row: int64 array, shape (n_left,)."""

    @property
    def offsets(self) -> np.ndarray:
        """Exclusive scan of the counts: int64 array, shape (n_left + 1,)."""

    @property
    def counters(self) -> JoinCounters:
        """What was looked at, and how many pairs there are."""

    def chunks(self, batch_pairs: int, /) -> Iterator[tuple[int, int]]:
        """Runs of base positions, each with about `batch_pairs` pairs."""

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray, /
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values of the pairs of the base positions start ... stop: two arrays, shape (pairs,).

        They are given by base position and by target position. `left_order` and `right_order` are
        such values: the rows of the pairs.
        """

    def matches(self, start: int, stop: int, right_values: np.ndarray, /) -> np.ndarray:
        """As `pairs`, the right side only: array, shape (pairs,)."""


def values_for(source: PairSource, side: int, column: RowValues) -> Any:
    """A column as a source takes it: by position, or by row where the source itself orders values."""
    if getattr(source, "orders_values", False):
        return column
    return column.ordered(source.left_order if side == LEFT else source.right_order)


class RankedSource(PairSource, Protocol):
    """Pairs by probability; the best one of each event is found without counting all."""

    @property
    def best_rows(self) -> int:
        """Base positions to ask for the best matches of at once."""

    def best(
        self, start: int, stop: int, ranks: np.ndarray, /
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The best match of the base positions start ... stop: target positions, and their merits.

        ``ranks`` order targets that are equal in all else: int64, by target position. Without a match
        a position is -1 and a merit NaN.
        """


class RangedSource(RankedSource, Protocol):
    """Pairs of runs of targets, which are aggregated without making them, if there are such runs."""

    @property
    def has_ranges(self) -> bool:
        """Whether `aggregated` may be asked for, of `best_rows` base positions at once."""

    def aggregated(
        self, start: int, stop: int, prepared: Prepared, /
    ) -> tuple[Found, JoinCounters]:
        """Counts, sums and least values of the matches of the base positions start ... stop."""


class MeasuredSource(PairSource, Protocol):
    """Pairs of which delta and distance are known as they are found."""

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray, /
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As `pairs`, then delta, int64, in ticks, and distance, float64, in units of the places."""

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray, /
    ) -> tuple[np.ndarray, np.ndarray]:
        """Delta and distance of given pairs."""
