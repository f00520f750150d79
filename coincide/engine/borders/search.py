"""Border search on a GPU, and on the CPU where its memory is short."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np

from coincide.engine.backends import release_gpu
from coincide.model.borders.crossings import Found
from coincide.model.borders.monitor import Search, Wanted
from coincide.model.errors import MemoryBudgetError

_log = logging.getLogger(__name__)


class ResilientSearch:
    """Used as `BorderSearch`. Both backends agree in order, so that what was handed out stands."""

    def __init__(
        self,
        first: Callable[[], Search],
        second: Callable[[], Search],
        falls_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._gpu, self._second, self._falls_back = first(), second, falls_back
        self._cpu: Search | None = None

    @property
    def retrieved(self) -> int:
        """As `BorderSearch`, like all that follow."""
        return self._gpu.retrieved + (0 if self._cpu is None else self._cpu.retrieved)

    @property
    def segments(self) -> np.ndarray:
        """Where points lie among borders."""
        if self._cpu is None:
            try:
                return self._gpu.segments
            except MemoryBudgetError as error:
                _log.warning("the CPU takes over: %s", error)
        return self._on_cpu().segments

    def found(
        self, start: int, stop: int, wanted: Wanted, processing: int, most: int
    ) -> Iterator[Found]:
        """The crossings of points start ... stop."""
        if self._cpu is None:
            try:
                for chunk in self._gpu.found(start, stop, wanted, processing, most):
                    start = chunk.stop
                    yield chunk
            except MemoryBudgetError as error:
                _log.warning("the CPU takes over: %s", error)
        if start < stop:
            yield from self._on_cpu().found(start, stop, wanted, processing, most)

    def _on_cpu(self) -> Search:
        # Outside the handlers: their tracebacks would keep the device's arrays.
        if self._cpu is None:
            self._cpu = self._second()
            self._falls_back()
            release_gpu()
        return self._cpu
