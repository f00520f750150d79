"""Live events of a stream in host memory, and the step that correlates a block."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bench.papers.streams.kernels.buffering import let_go, live_counts
from bench.papers.streams.kernels.lazy import CLASSED, LAZY, LOOKUP, evaluate
from bench.papers.streams.state import (
    SMALLEST,
    Deferred,
    Due,
    LiveEvents,
    Progress,
    Regions,
    Rules,
    is_wasteful,
)
from coincide.model.classes import ShapeClasses
from coincide.model.counters import offsets_of
from coincide.model.sides import LEFT, RIGHT


class Buffers(NamedTuple):
    """Live events, per side and class."""

    keys: np.ndarray  # int64, shape (2, K, capacity)
    shapes: np.ndarray  # int64, shape (2, K, capacity)
    numbers: np.ndarray  # int64, shape (2, K, capacity): arrival numbers
    ends: np.ndarray  # int64, shape (2, K, 2): first live position, and the one past the last


def new_buffers(classes: int, capacity: int = SMALLEST) -> Buffers:
    """Empty buffers."""
    keys, shapes, numbers = (np.empty((2, classes, capacity), np.int64) for _ in range(3))
    return Buffers(keys, shapes, numbers, np.zeros((2, classes, 2), np.int64))


def live_events_of(buffers: Buffers, side: int) -> LiveEvents:
    """A copy of the events in the buffers of a side."""
    runs = [slice(start, stop) for start, stop in buffers.ends[side].tolist()]
    keys, shapes, numbers = (
        np.concatenate([array[side, k, run] for k, run in enumerate(runs)]) for array in buffers[:3]
    )
    counts = buffers.ends[side, :, 1] - buffers.ends[side, :, 0]
    return LiveEvents(keys, shapes, numbers, offsets_of(counts))


def buffers_of(events: tuple[LiveEvents, LiveEvents], capacity: int = SMALLEST) -> Buffers:
    """Buffers that hold the given events, of the left and the right side, of as many classes."""
    largest = max(int(np.diff(side.offsets).max()) for side in events)
    fresh = new_buffers(events[0].offsets.size - 1, max(SMALLEST, capacity, largest))
    for side, k in np.ndindex(fresh.ends.shape[:2]):
        start, stop = events[side].offsets[k : k + 2]
        for new, old in zip(fresh[:3], events[side][:3], strict=True):
            new[side, k, : stop - start] = old[start:stop]
        fresh.ends[side, k, 1] = stop - start
    return fresh


def roomy_buffers(buffers: Buffers, extra: int) -> Buffers:
    """Buffers in which every class has room for `extra` more events."""
    # The same ones if there is room, and not far too much of it; else new ones of twice the need:
    # so what obsolete events leave behind is taken back, and copying costs a constant per event.
    stops = buffers.ends[:, :, 1]
    live = stops - buffers.ends[:, :, 0]
    needed, capacity = int(live.max()) + extra, buffers.keys.shape[2]
    if int(stops.max()) + extra <= capacity and not is_wasteful(capacity, needed):
        return buffers
    events = live_events_of(buffers, LEFT), live_events_of(buffers, RIGHT)
    return buffers_of(events, 2 * needed)


def _reclassed(events: LiveEvents, classes: ShapeClasses, count: int) -> LiveEvents:
    """The events of a side in its classes, and as many empty ones as make `count`."""
    owner = np.searchsorted(classes.highest, events.shapes)
    order = np.lexsort((events.keys, owner))
    offsets = np.searchsorted(owner[order], np.arange(count + 1))
    return LiveEvents(events.keys[order], events.shapes[order], events.numbers[order], offsets)


_KERNELS = {"lazy": LAZY, "lookup": LOOKUP, "classes": CLASSED}


class LiveBlocks:
    """Live events in host memory: a `LiveBlockStep`, which says what each method does."""

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
        most = max(each.count for each in classes)
        left, right = (_reclassed(self.events(side), classes[side], most) for side in (LEFT, RIGHT))
        return type(self)(self._algorithm, (left, right))

    def evaluate(self, due: Due) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait. There must be room for them (`reserve`)."""
        # An exception leaves events half correlated.
        waiting, *more = due
        return evaluate(_KERNELS[self._algorithm], waiting, self.buffers, *more)

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events."""
        let_go(self.buffers, progress, regions, rules, tally)

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side."""
        return live_events_of(self.buffers, side)
