"""Which backend searches an index: chosen where the work is done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from coincide.borders.index import BorderIndex
from coincide.borders.monitor import Search
from coincide.options import Backend
from spark_plugin.worker.backends.border_search import ResilientSearch
from spark_plugin.worker.backends.choice import check_backend, load_backend


@dataclass
class NewSearch:
    """Makes searches on a backend; it pickles.

    Where a GPU's memory has not done once, all that follow are on the CPU.

    Parameters
    ----------
    backend : {"auto", "cpu", "gpu"}
    threads : int
    """

    backend: Backend
    threads: int

    def __post_init__(self) -> None:
        check_backend(self.backend)

    def __call__(
        self, index: BorderIndex, values: np.ndarray, kinds: np.ndarray, near: np.ndarray | None
    ) -> Search:
        """A search of points among the borders of an index."""
        backend: Any = load_backend(self.backend)
        new_search = partial(_new_search, (index, values, kinds, near), self.threads)
        if backend.__name__ != "gpu_kernels":
            return new_search(backend)
        resilient: Any = ResilientSearch(
            partial(new_search, backend),
            lambda: new_search(load_backend("cpu")),
            partial(setattr, self, "backend", "cpu"),
        )
        found: Search = resilient
        return found


def _new_search(points: tuple[Any, ...], threads: int, backend: Any) -> Search:
    found: Search = backend.BorderSearch(*points, threads=threads)
    return found
