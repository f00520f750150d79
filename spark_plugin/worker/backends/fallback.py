"""A join on the GPU that goes on on the CPU where the device's memory does not do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from coincide.errors import MemoryBudgetError

T = TypeVar("T")
_log = logging.getLogger(__name__)


def make_join(backend: ModuleType, *sides: Any, **arguments: Any) -> Any:
    """The backend's `EventJoin`, with a way out if it is a GPU's."""
    return resilient(backend, lambda package: import_module(package).EventJoin(*sides, **arguments))


def resilient(backend: ModuleType, make: Callable[[str], Any]) -> Any:
    """What is made of a backend's name, and of the CPU's where the GPU has no memory for it.

    Parameters
    ----------
    backend : module
        From `spark_plugin.worker.backends.choice.load_backend`.
    make : callable
        From the name of a backend to a join; those of all backends agree.
    """
    if backend.__name__ != "gpu_kernels":
        return make(backend.__name__)
    return ResilientJoin(lambda: make("gpu_kernels"), lambda: make("cpu_fallback"))


class ResilientJoin:
    """A join of either backend: both agree in base positions and in each event's matches.

    So what was handed out stands. Of causality they may differ in the order of one event's matches: ask
    once for a run.

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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._do(lambda join: getattr(join, name))
        if not callable(found):
            return found
        return lambda *given: self._do(lambda join: _taken(getattr(join, name)(*given)))

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


def _taken(found: Any) -> Any:
    """An answer that is evaluated here, where a failure is caught, not as it is iterated."""
    return iter(list(found)) if isinstance(found, Iterator) else found
