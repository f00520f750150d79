"""Joins of a GPU that the CPU takes over where the GPU has no memory for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Generic, TypeVar

import numpy as np

from coincide.engine.pairs.source import MeasuredSource, PairSource, RankedSource
from coincide.model.counters import JoinCounters
from coincide.model.errors import MemoryBudgetError

_log = logging.getLogger(__name__)
S = TypeVar("S", bound=PairSource)
T = TypeVar("T")
_GPU, _CPU = "gpu_kernels", "cpu_fallback"


def resilient_ranked(backend: ModuleType, make: Callable[[str], RankedSource]) -> RankedSource:
    """The join that is made of a backend's name; of a GPU's one that the CPU can take over."""
    return make(backend.__name__) if backend.__name__ != _GPU else _ResilientRanked(make)


def resilient_measured(
    backend: ModuleType, make: Callable[[str], MeasuredSource]
) -> MeasuredSource:
    """As `resilient_ranked`, of joins that measure their pairs."""
    return make(backend.__name__) if backend.__name__ != _GPU else _ResilientMeasured(make)


class _Resilient(Generic[S]):
    """A join of either backend: both agree in base positions and in each event's matches.

    So batches that were taken stay valid. Of causality they may differ in the order of one event's
    matches: ask once for a run.
    """

    def __init__(self, make: Callable[[str], S]) -> None:
        self._make: Callable[[str], S] | None = make
        self._lock = threading.Lock()
        try:
            self._join = make(_GPU)
            return
        except MemoryBudgetError as error:
            problem = str(error)
        self._fall_back(problem)

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

    def _do(self, work: Callable[[S], T]) -> T:
        join = self._join
        try:
            return work(join)
        except MemoryBudgetError as error:
            if self._make is None and join is self._join:
                raise  # the CPU has no other way out
            problem = str(error)
        # Outside the handler: its traceback would keep the device's arrays.
        del join
        self._fall_back(problem)
        return work(self._join)

    def _fall_back(self, problem: str) -> None:
        with self._lock:
            if self._make is not None:  # no other thread was first
                _log.warning("the CPU takes over: %s", problem)
                self._join, self._make = self._make(_CPU), None


class _ResilientRanked(_Resilient[RankedSource]):
    @property
    def best_rows(self) -> int:
        """As `RankedSource`."""
        return self._do(lambda join: join.best_rows)

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """As `RankedSource`."""
        return self._do(lambda join: join.best(start, stop, ranks))


class _ResilientMeasured(_Resilient[MeasuredSource]):
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
