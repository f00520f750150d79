"""Live events of streams on a backend from batch to batch: a GPU, and the CPU where its memory is short."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from coincide.engine.backends import load_backend, release_gpu
from coincide.model.classes import ShapeClasses
from coincide.model.errors import MemoryBudgetError
from coincide.model.sides import LEFT, RIGHT
from coincide.model.streams.state import (
    Deferred,
    Due,
    LiveBlockStep,
    LiveEvents,
    Progress,
    Regions,
    Rules,
)

T = TypeVar("T")
_log = logging.getLogger(__name__)

_Events = tuple[LiveEvents, LiveEvents]


class ResilientLiveBlocks:
    """Used as `LiveBlocks`. Nothing is done by halves on the GPU, so that the CPU can do it again.

    A copy, or what is unpickled, chooses its backend anew, where it is made: its events travel by way
    of host memory.
    """

    def __init__(self, algorithm: Deferred, backend: str, events: _Events | None = None) -> None:
        self._algorithm = algorithm
        self._backend = backend
        try:
            self._live = self._made(events)
            return
        except MemoryBudgetError as error:
            self._warn(error)
        self._live = self._made(events)

    def __reduce__(self) -> tuple[Any, ...]:
        return ResilientLiveBlocks, (self._algorithm, self._backend, self._events())

    @property
    def counts(self) -> np.ndarray:
        """As `LiveBlocks`, like all that follow."""
        return self._live.counts

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side."""
        return self._live.shapes(side)

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side, in host memory."""
        return self._live.events(side)

    def reserve(self, extra: int) -> None:
        """Have room for more events."""
        self._do(lambda live: live.reserve(extra))

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> ResilientLiveBlocks:
        """The same events in other length classes."""
        live = self._do(lambda live: live.reclassed(classes))
        made = object.__new__(ResilientLiveBlocks)
        vars(made).update(vars(self) | {"_live": live})
        return made

    def evaluate(self, due: Due) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait."""

        def work(live: LiveBlockStep) -> tuple[int, np.ndarray, np.ndarray]:
            live.reserve(int(due.progress.waiting.max()))
            return live.evaluate(due)

        return self._do(work)

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events."""
        self._do(lambda live: live.let_go(progress, regions, rules, tally))

    def _do(self, work: Callable[[LiveBlockStep], T]) -> T:
        try:
            return work(self._live)
        except MemoryBudgetError as error:
            if self._backend == "cpu":
                raise
            self._warn(error)
        # Outside the handler: its traceback would keep the device's arrays.
        self._live = self._made(self._events())
        release_gpu()
        return work(self._live)

    def _warn(self, error: MemoryBudgetError) -> None:
        _log.warning("going on on the CPU: %s", error)
        self._backend = "cpu"

    def _events(self) -> _Events:
        return self._live.events(LEFT), self._live.events(RIGHT)

    def _made(self, events: _Events | None) -> LiveBlockStep:
        package = load_backend(self._backend).__name__
        return import_module(f"{package}.streams").LiveBlocks(self._algorithm, events)
