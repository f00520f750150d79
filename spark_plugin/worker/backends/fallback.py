"""A join on the GPU that goes on on the CPU where the device's memory does not do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from coincide.errors import MemoryBudgetError
from coincide.results import JoinCounters

T = TypeVar("T")
_log = logging.getLogger(__name__)


def make_join(backend: ModuleType, *sides: Any, **arguments: Any) -> Any:
    """The backend's `EventJoin`, with a way out if it is a GPU's."""
    if backend.__name__ != "gpu_kernels":
        return backend.EventJoin(*sides, **arguments)
    cpu = import_module("cpu_fallback")
    return ResilientJoin(
        lambda: backend.EventJoin(*sides, **arguments),
        lambda: cpu.EventJoin(*sides, **arguments),
    )


class ResilientJoin:
    """Used as an `EventJoin`. Both backends agree in order, so that what was handed out stands.

    Parameters
    ----------
    first, second : callable
        Make the join on the GPU, and on the CPU once the device has no memory for one event's matches.
    """

    def __init__(self, first: Callable[[], Any], second: Callable[[], Any]) -> None:
        self._second: Callable[[], Any] | None = second
        self._lock = threading.Lock()
        try:
            self._join = first()
        except MemoryBudgetError as error:
            self._fall_back(error)

    @property
    def left_order(self) -> np.ndarray:
        """As `EventJoin`, like all that follow."""
        return self._do(lambda join: join.left_order)

    @property
    def right_order(self) -> np.ndarray:
        """Right row at each target position."""
        return self._do(lambda join: join.right_order)

    @property
    def counts(self) -> np.ndarray:
        """Matches of each base position."""
        return self._do(lambda join: join.counts)

    @property
    def offsets(self) -> np.ndarray:
        """Exclusive scan of the counts."""
        return self._do(lambda join: join.offsets)

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at and found."""
        return self._do(lambda join: join.counters)

    def chunks(self, batch_pairs: int) -> Iterator[tuple[int, int]]:
        """Runs of base positions of about `batch_pairs` matches."""
        # A list: evaluated here, where a failure is caught.
        return iter(self._do(lambda join: list(join.chunks(batch_pairs))))

    def pairs(self, *given: Any) -> tuple[np.ndarray, np.ndarray]:
        """The matches of a run of base positions."""
        return self._do(lambda join: join.pairs(*given))

    def partners(self, *given: Any) -> np.ndarray:
        """As `pairs`, the right side only."""
        return self._do(lambda join: join.partners(*given))

    def best(self, *given: Any) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable partners of a run of base positions."""
        return self._do(lambda join: join.best(*given))

    def _do(self, work: Callable[[Any], T]) -> T:
        try:
            return work(self._join)
        except MemoryBudgetError as error:
            self._fall_back(error)
            return work(self._join)

    def _fall_back(self, error: MemoryBudgetError) -> None:
        with self._lock:
            # Another thread may have been first; the CPU has no other way out.
            if self._second is not None:
                _log.warning("going on on the CPU: %s", error)
                self._join, self._second = self._second(), None
