"""What the CPU takes over where a GPU has no memory for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from coincide.engine.backends import release_gpu
from coincide.model.errors import MemoryBudgetError

_log = logging.getLogger(__name__)
M = TypeVar("M")
T = TypeVar("T")
GPU, _CPU = "gpu_kernels", "cpu_fallback"


class Resilient(Generic[M]):
    """What is made on the GPU, and made again on the CPU, once, where the GPU has no memory for it.

    `make` gets the name of a backend's package.
    """

    def __init__(self, make: Callable[[str], M]) -> None:
        self._make: Callable[[str], M] | None = make
        self._lock = threading.Lock()
        try:
            self._made = make(GPU)
            return
        except MemoryBudgetError as error:
            problem = str(error)
        self._take_over(problem)

    def _do(self, work: Callable[[M], T]) -> T:
        made = self._made
        try:
            return work(made)
        except MemoryBudgetError as error:
            problem = self._problem_of_gpu(made, error)
        # Outside the handler: its traceback would keep the device's arrays.
        del made
        self._take_over(problem)
        return work(self._made)

    def _problem_of_gpu(self, made: M, error: MemoryBudgetError) -> str:
        """What the GPU lacks; the error is raised again where the CPU lacks it."""
        if self._make is None and made is self._made:
            raise error
        return str(error)

    def _take_over(self, problem: str) -> None:
        with self._lock:
            if self._make is not None:  # no other thread was first
                _log.warning("the CPU takes over: %s", problem)
                self._made, self._make = self._make(_CPU), None
                release_gpu()
