"""The correlators that act on every arrival: Simple, Simple-Sort, Eager."""

from __future__ import annotations

from typing import Literal

import numpy as np

from coincide.streams.correlator import StreamCorrelator
from coincide.streams.intake import Batch
from coincide.streams.options import StreamOptions
from coincide.streams.region_tables import impossible_regions, max_time_regions
from cpu_fallback.streams.buffers import new_buffers, roomy_buffers
from cpu_fallback.streams.kernels.buffering import let_go
from cpu_fallback.streams.kernels.eager import correlate_eagerly
from cpu_fallback.streams.kernels.simple import correlate_simple, let_go_unsorted

Immediate = Literal["simple", "simple-sort", "eager"]


class ImmediateCorrelator(StreamCorrelator):
    """Correlates each event as it arrives, Lee & Lee (2010), Algorithms 1 to 3.

    Parameters
    ----------
    options : StreamOptions
        The re-evaluation condition is not used.
    algorithm : {"simple", "simple-sort", "eager"}
    """

    def __init__(self, options: StreamOptions, algorithm: Immediate) -> None:
        regions = max_time_regions if algorithm == "eager" else impossible_regions
        super().__init__(options, regions(options))
        self._algorithm = algorithm
        self._buffers = new_buffers(1)

    def _take(self, batch: Batch, late: np.ndarray) -> None:
        self._buffers = roomy_buffers(self._buffers, batch.sides.size)
        given = (batch, self._buffers, self._progress, self._regions, self._rules)
        written = (self._tally, self._response, late, *self._space())
        self._halfway = True
        if self._algorithm == "eager":
            self._keep(*correlate_eagerly(*given, *written))
        else:
            ordered = self._algorithm == "simple-sort"
            self._keep(*correlate_simple(*given, ordered, *written))
        self._halfway = False

    def _time_passed(self) -> None:
        release = let_go_unsorted if self._algorithm == "simple" else let_go
        release(self._buffers, self._progress, self._regions, self._rules, self._tally)

    def _finish(self) -> None:
        """Nothing waits."""

    def _fit(self) -> None:
        self._buffers = roomy_buffers(self._buffers, 0)
