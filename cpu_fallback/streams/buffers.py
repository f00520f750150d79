"""The live events of a side in host memory: sorted buffers, one a class.

Arrays have a leading axis of two, the sides. Kernels write into them; only Python makes new ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.results import offsets_of
from coincide.shape_classes import ShapeClasses
from coincide.streams.shared import LiveEvents
from coincide.streams.state import SMALLEST, is_wasteful


class Buffers(NamedTuple):
    """Live events, per side and class.

    Parameters
    ----------
    keys : int64 array, shape (2, K, capacity)
        What a class is sorted by, half ticks: what the timestamps' model gives, of intervals the doubled
        midpoint; or the doubled max_time (the papers' order). Unsorted in the simple algorithm.
    shapes : int64 array, shape (2, K, capacity)
    numbers : int64 array, shape (2, K, capacity)
        Arrival numbers.
    ends : int64 array, shape (2, K, 2)
        First live position, and the one past the last.
    """

    keys: np.ndarray
    shapes: np.ndarray
    numbers: np.ndarray
    ends: np.ndarray


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


def buffers_of(events: tuple[LiveEvents, LiveEvents]) -> Buffers:
    """Buffers that hold the given events, of the left and the right side, of as many classes."""
    largest = max(int(np.diff(side.offsets).max()) for side in events)
    fresh = new_buffers(events[0].offsets.size - 1, max(SMALLEST, largest))
    for side, k in np.ndindex(fresh.ends.shape[:2]):
        start, stop = events[side].offsets[k : k + 2]
        for new, old in zip(fresh[:3], events[side][:3], strict=True):
            new[side, k, : stop - start] = old[start:stop]
        fresh.ends[side, k, 1] = stop - start
    return fresh


def roomy_buffers(buffers: Buffers, extra: int) -> Buffers:
    """Buffers in which every class has room for `extra` more events.

    The same ones if there is room, and not far too much of it; else new ones of twice the need: so
    what obsolete events leave behind is taken back, and copying costs a constant per event.
    """
    stops = buffers.ends[:, :, 1]
    live = stops - buffers.ends[:, :, 0]
    needed, capacity = int(live.max()) + extra, buffers.keys.shape[2]
    if int(stops.max()) + extra <= capacity and not is_wasteful(capacity, needed):
        return buffers
    classes = live.shape[1]
    roomy = new_buffers(classes, max(SMALLEST, 2 * needed))
    for side, k in np.ndindex(2, classes):
        start, stop = buffers.ends[side, k]
        for old, new in zip(buffers[:3], roomy[:3], strict=True):
            new[side, k, : stop - start] = old[side, k, start:stop]
    roomy.ends[:, :, 1] = live
    return roomy


def reclassed_buffers(
    events: tuple[LiveEvents, LiveEvents], classes: tuple[ShapeClasses, ShapeClasses]
) -> Buffers:
    """Buffers of live events, left and right, in other classes; keys are those of their model."""
    most = max(each.count for each in classes)
    left, right = (_reclassed(*side, most) for side in zip(events, classes, strict=True))
    return buffers_of((left, right))


def _reclassed(events: LiveEvents, classes: ShapeClasses, count: int) -> LiveEvents:
    """The events of a side in its classes, and as many empty ones as make `count`."""
    owner = np.searchsorted(classes.highest, events.shapes)
    order = np.lexsort((events.keys, owner))
    offsets = np.searchsorted(owner[order], np.arange(count + 1))
    return LiveEvents(events.keys[order], events.shapes[order], events.numbers[order], offsets)
