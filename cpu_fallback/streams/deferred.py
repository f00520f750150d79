"""The correlators that wait for a block: Lazy, Lazy with look-up, Lazy with length classes."""

from __future__ import annotations

import numpy as np

from cpu_fallback.streams.class_cuts import (
    DEFAULT_CLASSES,
    ENOUGH,
    covering_classes,
    live_lengths,
    one_class,
    reclassed_buffers,
)
from cpu_fallback.streams.correlator import StreamCorrelator
from cpu_fallback.streams.intake import Batch
from cpu_fallback.streams.kernels.arrivals import wait_for_block
from cpu_fallback.streams.kernels.buffering import let_go
from cpu_fallback.streams.kernels.evaluation import CLASSED, LAZY, LOOKUP, evaluate
from cpu_fallback.streams.options import StreamOptions
from cpu_fallback.streams.region_tables import Regions, max_time_regions, midpoint_regions
from cpu_fallback.streams.sides import LEFT, RIGHT
from cpu_fallback.streams.state import (
    new_waiting,
    roomy_buffers,
    roomy_waiting,
)
from event_model.length_classes import LengthClasses


class LazyCorrelator(StreamCorrelator):
    """Correlates a block of events at a time, Lee & Lee (2010), Algorithms 4 and 5.

    Parameters
    ----------
    options : StreamOptions
    lookup : bool
        Whether probes use a look-up table, Algorithms 6 and 7.
    """

    def __init__(self, options: StreamOptions, *, lookup: bool = False) -> None:
        self._start(options, max_time_regions(options), LOOKUP if lookup else LAZY)

    def _start(self, options: StreamOptions, regions: Regions, algorithm: int) -> None:
        super().__init__(options, regions)
        self._algorithm = algorithm
        self._waiting = new_waiting()

    def _take(self, batch: Batch, late: np.ndarray) -> None:
        self._waiting = roomy_waiting(self._waiting, self._progress, batch.sides.size)
        start = 0
        while start < batch.sides.size:
            given = (start, batch, self._buffers, self._waiting, self._progress, self._rules)
            start, due = wait_for_block(*given, self._tally, late)
            if due:
                self._evaluate()

    def _time_passed(self) -> None:
        if self._progress.waiting.any():
            self._evaluate()
        else:
            let_go(self._buffers, self._progress, self._regions, self._rules, self._tally)

    def _finish(self) -> None:
        if self._progress.waiting.any():
            self._evaluate()

    def _fit(self) -> None:
        super()._fit()
        self._waiting = roomy_waiting(self._waiting, self._progress, 0)

    def _evaluate(self) -> None:
        self._buffers = roomy_buffers(self._buffers, int(self._progress.waiting.max()))
        given = (self._waiting, self._buffers, self._progress, self._regions, self._rules)
        written = (self._tally, self._response, *self._space())
        self._halfway = True
        self._keep(*evaluate(self._algorithm, *given, *written))
        self._halfway = False


class ClassedCorrelator(LazyCorrelator):
    """The lazy algorithm with length classes on the midpoint axis.

    Classes are cut once some hundred events of a side were seen; they change the work, never the
    answer.

    Parameters
    ----------
    options : StreamOptions
    """

    def __init__(self, options: StreamOptions) -> None:
        self._classes = (one_class(options.limits[LEFT]), one_class(options.limits[RIGHT]))
        self._is_cut = [False, False]
        self._start(options, midpoint_regions(options, self._classes), CLASSED)

    def _evaluate(self) -> None:
        if not all(self._is_cut):
            self._cut_classes()
        super()._evaluate()

    def _cut_classes(self) -> None:
        cut = (self._cut(LEFT), self._cut(RIGHT))
        is_new = [new is not old for new, old in zip(cut, self._classes, strict=True)]
        if not any(is_new):
            return
        regions = midpoint_regions(self.options, cut)
        buffers = reclassed_buffers(self._buffers, cut)
        self._halfway = True
        self._classes, self._regions, self._buffers = cut, regions, buffers
        self._is_cut = [was or new for was, new in zip(self._is_cut, is_new, strict=True)]
        self._halfway = False

    def _cut(self, side: int) -> LengthClasses:
        """The classes of a side, cut now if it is time."""
        lengths = self._lengths_seen(side)
        if self._is_cut[side] or lengths.size < ENOUGH:
            return self._classes[side]
        most = self.options.classes or DEFAULT_CLASSES
        return covering_classes(lengths, most, self.options.limits[side])

    def _lengths_seen(self, side: int) -> np.ndarray:
        waiting = self._waiting.lengths[side, : self._progress.waiting[side]]
        return np.concatenate([live_lengths(self._buffers, side), waiting])
