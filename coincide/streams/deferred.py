"""The correlators that wait for a block: Lazy, Lazy with look-up, Lazy with classes."""

from __future__ import annotations

import numpy as np

from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT, RIGHT
from coincide.streams.arrivals import wait_for_block
from coincide.streams.correlator import StreamCorrelator
from coincide.streams.intake import Batch
from coincide.streams.live_blocks import LiveBlockStep
from coincide.streams.options import StreamOptions
from coincide.streams.region_tables import key_regions, max_time_regions, one_class
from coincide.streams.shared import Regions
from coincide.streams.state import new_waiting, roomy_waiting

ENOUGH = 256
"""Events of a side to see before its shapes are cut into classes."""


class LazyCorrelator(StreamCorrelator):
    """Correlates a block of events at a time, Lee & Lee (2010), Algorithms 4 and 5.

    Or, with live blocks that use a look-up table, Algorithms 6 and 7.

    Parameters
    ----------
    options : StreamOptions
    live : LiveBlockStep
        Of the algorithm; empty.
    """

    def __init__(self, options: StreamOptions, live: LiveBlockStep) -> None:
        self._start(options, max_time_regions(options), live)

    def _start(self, options: StreamOptions, regions: Regions, live: LiveBlockStep) -> None:
        super().__init__(options, regions)
        self._live = live
        self._waiting = new_waiting()

    def _take(self, batch: Batch, late: np.ndarray) -> None:
        self._waiting = roomy_waiting(self._waiting, self._progress, batch.sides.size)
        start = 0
        while start < batch.sides.size:
            given = (start, batch, self._live.counts, self._waiting, self._progress, self._rules)
            start, due = wait_for_block(*given, self._tally, late)
            if due:
                self._evaluate()

    def _time_passed(self) -> None:
        if self._progress.waiting.any():
            self._evaluate()
        else:
            self._live.let_go(self._progress, self._regions, self._rules, self._tally)

    def _finish(self) -> None:
        if self._progress.waiting.any():
            self._evaluate()

    def _fit(self) -> None:
        self._live.reserve(0)
        self._waiting = roomy_waiting(self._waiting, self._progress, 0)

    def _evaluate(self) -> None:
        self._live.reserve(int(self._progress.waiting.max()))
        given = (self._waiting, self._progress, self._regions, self._rules)
        written = (self._tally, self._response, *self._space())
        self._halfway = True
        self._keep(*self._live.evaluate(*given, *written))
        self._halfway = False


class ClassedCorrelator(LazyCorrelator):
    """The lazy algorithm with classes, on the axis of keys: of intervals, doubled midpoints.

    Classes are cut once some hundred events of a side were seen; they change the work, never the
    answer.

    Parameters
    ----------
    options : StreamOptions
    live : LiveBlockStep
        Of the algorithm; empty.
    """

    def __init__(self, options: StreamOptions, live: LiveBlockStep) -> None:
        self._classes = (one_class(options.limits[LEFT]), one_class(options.limits[RIGHT]))
        self._is_cut = [False, False]
        self._start(options, key_regions(options, self._classes), live)

    def _evaluate(self) -> None:
        if not all(self._is_cut):
            self._cut_classes()
        super()._evaluate()

    def _cut_classes(self) -> None:
        cut = (self._cut(LEFT), self._cut(RIGHT))
        is_new = [new is not old for new, old in zip(cut, self._classes, strict=True)]
        if not any(is_new):
            return
        regions = key_regions(self.options, cut)
        live = self._live.reclassed(cut)
        self._halfway = True
        self._classes, self._regions, self._live = cut, regions, live
        self._is_cut = [was or new for was, new in zip(self._is_cut, is_new, strict=True)]
        self._halfway = False

    def _cut(self, side: int) -> ShapeClasses:
        """The classes of a side, cut now if it is time."""
        waiting = int(self._progress.waiting[side])
        if self._is_cut[side] or self._live.counts[side] + waiting < ENOUGH:
            return self._classes[side]
        seen = np.concatenate([self._live.shapes(side), self._waiting.shapes[side, :waiting]])
        limits = self.options.limits[side]
        bounds = limits.shortest, limits.longest
        return self.options.model.stream_classes(side, seen, self.options.classes, bounds)
