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
from cpu_fallback.streams.kernels.arrivals import is_due, wait_for_block
from cpu_fallback.streams.kernels.buffering import let_go
from cpu_fallback.streams.kernels.classed import evaluate_by_class
from cpu_fallback.streams.kernels.evaluation import evaluate
from cpu_fallback.streams.options import StreamOptions
from cpu_fallback.streams.region_tables import Regions, max_time_regions, midpoint_regions
from cpu_fallback.streams.results import NO_MATCHES, Matches
from cpu_fallback.streams.sides import LEFT, RIGHT
from cpu_fallback.streams.state import (
    new_recent,
    new_waiting,
    roomy_buffers,
    roomy_recent,
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
        self._start(options, max_time_regions(options))
        self._lookup = lookup

    def _start(self, options: StreamOptions, regions: Regions) -> None:
        super().__init__(options, regions)
        self._waiting = new_waiting()

    def _take(self, batch: Batch, late: np.ndarray) -> list[Matches]:
        found = []
        self._waiting = roomy_waiting(self._waiting, self._progress, batch.sides.size)
        start = 0
        while start < batch.sides.size:
            given = (start, batch, self._buffers, self._waiting, self._progress, self._rules)
            start, due = wait_for_block(*given, self._tally, late)
            if due:
                found.append(self._evaluate())
        return found

    def _time_passed(self) -> Matches:
        if is_due(self._progress, self._rules):
            return self._evaluate()
        if not self._progress.waiting.any():
            let_go(self._buffers, self._progress, self._regions, self._rules, self._tally)
        return NO_MATCHES

    def _finish(self) -> Matches:
        return self._evaluate() if self._progress.waiting.any() else NO_MATCHES

    def _evaluate(self) -> Matches:
        self._buffers = roomy_buffers(self._buffers, int(self._progress.waiting.max()))
        given = (self._waiting, self._buffers, self._progress, self._regions, self._rules)
        written = (self._tally, self._response, *self._space())
        return self._result(*evaluate(self._lookup, *given, *written))


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
        self._start(options, midpoint_regions(options, self._classes))
        self._recent = new_recent()

    def _evaluate(self) -> Matches:
        if not all(self._is_cut):
            self._cut_classes()
        most = int(self._progress.waiting.max())
        self._buffers = roomy_buffers(self._buffers, most)
        self._recent = roomy_recent(self._recent, most)
        events = (self._waiting, self._buffers, self._recent, self._progress)
        written = (self._tally, self._response, *self._space())
        return self._result(*evaluate_by_class(*events, self._regions, self._rules, *written))

    def _cut_classes(self) -> None:
        cut = [self._cut(side) for side in (LEFT, RIGHT)]
        if cut[LEFT] is self._classes[LEFT] and cut[RIGHT] is self._classes[RIGHT]:
            return
        self._classes = (cut[LEFT], cut[RIGHT])
        self._regions = midpoint_regions(self.options, self._classes)
        self._buffers = reclassed_buffers(self._buffers, self._classes)

    def _cut(self, side: int) -> LengthClasses:
        """The classes of a side, cut now if it is time."""
        lengths = self._lengths_seen(side)
        if self._is_cut[side] or lengths.size < ENOUGH:
            return self._classes[side]
        self._is_cut[side] = True
        most = self.options.classes or DEFAULT_CLASSES
        return covering_classes(lengths, most, self.options.limits[side])

    def _lengths_seen(self, side: int) -> np.ndarray:
        waiting = self._waiting.lengths[side, : self._progress.waiting[side]]
        return np.concatenate([live_lengths(self._buffers, side), waiting])
