"""The live events of the lazy correlators, and the step that correlates a block with them: the host's."""

from __future__ import annotations

import numpy as np

from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT, RIGHT
from coincide.streams.arrivals import live_counts
from coincide.streams.live_blocks import Deferred
from coincide.streams.shared import LiveEvents, Progress, Regions, Rules, Waiting
from cpu_fallback.streams.buffers import (
    buffers_of,
    live_events_of,
    new_buffers,
    reclassed_buffers,
    roomy_buffers,
)
from cpu_fallback.streams.kernels.buffering import let_go
from cpu_fallback.streams.kernels.evaluation import CLASSED, LAZY, LOOKUP, evaluate

_KERNELS = {"lazy": LAZY, "lookup": LOOKUP, "classes": CLASSED}


class LiveBlocks:
    """Live events in host memory: a `LiveBlockStep`, which says what each method does.

    Parameters
    ----------
    algorithm : {"lazy", "lookup", "classes"}
    events : (LiveEvents, LiveEvents), optional
        Live events to begin with, of the left and the right side; none if not given.
    """

    def __init__(
        self, algorithm: Deferred, events: tuple[LiveEvents, LiveEvents] | None = None
    ) -> None:
        self._algorithm = algorithm
        self.buffers = new_buffers(1) if events is None else buffers_of(events)

    @property
    def counts(self) -> np.ndarray:
        """As `LiveBlockStep`, like all that follow."""
        return live_counts(self.buffers)

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side."""
        return self.events(side).shapes

    def reserve(self, extra: int) -> None:
        """Have room for more events."""
        self.buffers = roomy_buffers(self.buffers, extra)

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> LiveBlocks:
        """The same events in other classes."""
        made = type(self)(self._algorithm)
        made.buffers = reclassed_buffers((self.events(LEFT), self.events(RIGHT)), classes)
        return made

    def evaluate(
        self,
        waiting: Waiting,
        progress: Progress,
        regions: Regions,
        rules: Rules,
        tally: np.ndarray,
        response: np.ndarray,
        left_out: np.ndarray,
        right_out: np.ndarray,
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait. There must be room for them (`reserve`).

        An exception leaves events half correlated.
        """
        return evaluate(
            _KERNELS[self._algorithm], waiting, self.buffers, progress, regions, rules, tally, response,
            left_out, right_out,
        )  # fmt: skip

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events."""
        let_go(self.buffers, progress, regions, rules, tally)

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side."""
        return live_events_of(self.buffers, side)
