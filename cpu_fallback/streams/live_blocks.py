"""The live events of the lazy correlators, and the step that correlates a block with them: the host's."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from cpu_fallback.streams.class_cuts import reclassed_buffers
from cpu_fallback.streams.kernels.arrivals import live_counts
from cpu_fallback.streams.kernels.buffering import let_go
from cpu_fallback.streams.kernels.evaluation import CLASSED, LAZY, LOOKUP, evaluate
from cpu_fallback.streams.state import buffers_of, live_events_of, new_buffers, roomy_buffers
from event_model.length_classes import LengthClasses
from event_model.sides import LEFT, RIGHT
from event_model.streams import LiveEvents, Progress, Regions, Rules, Waiting

Deferred = Literal["lazy", "lookup", "classes"]
"""The algorithms that correlate a block at a time."""

_KERNELS = {"lazy": LAZY, "lookup": LOOKUP, "classes": CLASSED}


class LiveBlockStep(Protocol):
    """The live events of both sides, wherever they are kept.

    A method that raises MemoryError has changed nothing, but for `evaluate`, whose backend says.
    """

    @property
    def counts(self) -> np.ndarray:
        """Live events, left and right: int64 array, shape (2,)."""

    def lengths(self, side: int) -> np.ndarray:
        """Lengths of the live events of a side, ticks: int64 array, shape (n,)."""

    def reserve(self, extra: int) -> None:
        """Have room for `extra` more events a class, and give back what is far too much."""

    def reclassed(self, classes: tuple[LengthClasses, LengthClasses]) -> LiveBlockStep:
        """The same events in other length classes, of the left and the right side."""

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
        """Correlate all events that wait, keep them, and let go of obsolete ones.

        Parameters
        ----------
        waiting : Waiting
        progress : Progress, written
        regions : Regions
        rules : Rules
        tally, response : arrays, written
            From `cpu_fallback.streams.statistics`.
        left_out, right_out : int64 arrays, written
            Room for pairs; its size does not matter. Empty if the rules ask for counts.

        Returns
        -------
        int
            Pairs found.
        two int64 arrays
            `left_out` and `right_out`, or larger ones.
        """

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events. Parameters as `evaluate`."""

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side, in host memory."""


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

    def lengths(self, side: int) -> np.ndarray:
        """Lengths of the live events of a side."""
        return self.events(side).lengths

    def reserve(self, extra: int) -> None:
        """Have room for more events."""
        self.buffers = roomy_buffers(self.buffers, extra)

    def reclassed(self, classes: tuple[LengthClasses, LengthClasses]) -> LiveBlocks:
        """The same events in other length classes."""
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
