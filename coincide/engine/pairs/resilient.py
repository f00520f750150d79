"""Joins of a GPU that the CPU takes over where the GPU has no memory for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from coincide.engine.pairs.source import MeasuredSource, PairSource, RangedSource, values_for
from coincide.engine.resilient import GPU, Resilient
from coincide.model.counters import JoinCounters, RowValues
from coincide.model.range_sums import Found, Prepared
from coincide.model.sides import LEFT, RIGHT

S = TypeVar("S", bound=PairSource)


def resilient_ranked(backend: ModuleType, make: Callable[[str], RangedSource]) -> RangedSource:
    """The join that is made of a backend's name; of a GPU's one that the CPU can take over."""
    return make(backend.__name__) if backend.__name__ != GPU else _ResilientRanked(make)


def resilient_measured(
    backend: ModuleType, make: Callable[[str], MeasuredSource]
) -> MeasuredSource:
    """As `resilient_ranked`, of joins that measure their pairs."""
    return make(backend.__name__) if backend.__name__ != GPU else _ResilientMeasured(make)


class _ResilientJoin(Resilient[S]):
    """A join of either backend: both agree in base positions and in each event's matches.

    So batches that were taken stay valid. In causality they may differ in the order of one event's
    matches: ask once for a run.
    """

    @property
    def left_order(self) -> np.ndarray:
        """As `PairSource`, and so is all that follows."""
        return self._do(lambda join: join.left_order)

    @property
    def right_order(self) -> np.ndarray:
        return self._do(lambda join: join.right_order)

    @property
    def counts(self) -> np.ndarray:
        return self._do(lambda join: join.counts)

    @property
    def row_counts(self) -> np.ndarray:
        return self._do(lambda join: join.row_counts)

    @property
    def offsets(self) -> np.ndarray:
        return self._do(lambda join: join.offsets)

    @property
    def counters(self) -> JoinCounters:
        return self._do(lambda join: join.counters)

    def chunks(self, batch_pairs: int) -> Iterator[tuple[int, int]]:
        # Evaluated here, where a failure is caught, not as it is iterated.
        return iter(self._do(lambda join: list(join.chunks(batch_pairs))))

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._do(lambda join: join.pairs(start, stop, left_values, right_values))

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        return self._do(lambda join: join.matches(start, stop, right_values))


def _given(join: PairSource, *sides: Any) -> list[Any]:
    """Values of the last sides as a join takes them: the CPU may take over between two calls."""
    numbered = zip((LEFT, RIGHT)[-len(sides) :], sides, strict=True)
    return [
        values_for(join, side, each) if isinstance(each, RowValues) else each
        for side, each in numbered
    ]


class _ResilientRanked(_ResilientJoin[RangedSource]):
    orders_values = True
    """As a GPU's join: so columns go there as they are, and no order comes back."""

    def pairs(
        self, start: int, stop: int, left_values: Any, right_values: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `PairSource`; also of `RowValues`."""
        values = left_values, right_values
        return self._do(lambda join: join.pairs(start, stop, *_given(join, *values)))

    def matches(self, start: int, stop: int, right_values: Any) -> np.ndarray:
        """Likewise."""
        return self._do(lambda join: join.matches(start, stop, *_given(join, right_values)))

    @property
    def best_rows(self) -> int:
        """As `RankedSource`."""
        return self._do(lambda join: join.best_rows)

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """As `RankedSource`."""
        return self._do(lambda join: join.best(start, stop, ranks))

    @property
    def has_ranges(self) -> bool:
        """As `RangedSource`."""
        return self._do(lambda join: join.has_ranges)

    def aggregated(self, start: int, stop: int, prepared: Prepared) -> tuple[Found, JoinCounters]:
        """As `RangedSource`."""
        return self._do(lambda join: join.aggregated(start, stop, prepared))


class _ResilientMeasured(_ResilientJoin[MeasuredSource]):
    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As `MeasuredSource`."""
        return self._do(lambda join: join.measured_pairs(start, stop, left_values, right_values))

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As `MeasuredSource`."""
        return self._do(lambda join: join.measured(left_rows, right_rows))
