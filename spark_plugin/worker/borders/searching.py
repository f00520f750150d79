"""Which backend searches an index: chosen where the work is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coincide.borders.index import BorderIndex
from coincide.borders.monitor import Search
from coincide.options import Backend
from spark_plugin.worker.backends.choice import check_backend, load_backend


@dataclass(frozen=True)
class NewSearch:
    """Makes searches on a backend; it pickles.

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
        found: Search = backend.BorderSearch(index, values, kinds, near, threads=self.threads)
        return found
