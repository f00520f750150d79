"""What a correlator keeps: live events, events not yet processed, and how far the streams have come.

Arrays have a leading axis of two, the sides. Kernels write into them; only Python makes new ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from event_model.units import TIME_LIMIT

NEVER = -TIME_LIMIT
"""A clock that has not begun."""

_SMALLEST = 1024
_WASTEFUL = 8


class Buffers(NamedTuple):
    """Live events, per side and length class.

    Parameters
    ----------
    keys : int64 array, shape (2, K, capacity)
        What a class is sorted by, half ticks: the doubled midpoint, or the doubled max_time (the
        papers' order). Unsorted in the simple algorithm.
    lengths : int64 array, shape (2, K, capacity)
        Ticks.
    numbers : int64 array, shape (2, K, capacity)
        Arrival numbers.
    ends : int64 array, shape (2, K, 2)
        First live position, and the one past the last.
    """

    keys: np.ndarray
    lengths: np.ndarray
    numbers: np.ndarray
    ends: np.ndarray


class Waiting(NamedTuple):
    """Events that wait for the next re-evaluation, in order of arrival; `Progress` has their number.

    Parameters
    ----------
    max_times, lengths, numbers : int64 arrays, shape (2, capacity)
    """

    max_times: np.ndarray
    lengths: np.ndarray
    numbers: np.ndarray


class Progress(NamedTuple):
    """How far the streams have come.

    Parameters
    ----------
    clock : int64 array, shape (2,)
        Latest arrival instant of each side, ticks; NEVER before the first.
    arrived, waiting : int64 arrays, shape (2,)
        Events arrived, and those not yet processed.
    evaluated_at : int64 array, shape (1,)
        Time of the last re-evaluation, ticks.
    """

    clock: np.ndarray
    arrived: np.ndarray
    waiting: np.ndarray
    evaluated_at: np.ndarray


class Rules(NamedTuple):
    """The options that kernels need.

    Parameters
    ----------
    lo, hi : int
        The window, ticks.
    threshold : float
        Smallest probability that qualifies.
    certain : float
        From here on no rounding can lift a larger exact probability below the threshold.
    one_tail : bool
        Whether the window is as wide as the longest timestamps of both sides together, so that only
        one of its ends ever cuts.
    delays : int64 array, shape (2,)
        Ticks.
    block, every : int
        The re-evaluation condition: events of a side, ticks.
    pairs : bool
        Whether to write pairs, or only count them.
    response : bool
        Whether to note response times.
    """

    lo: int
    hi: int
    threshold: float
    certain: float
    one_tail: bool
    delays: np.ndarray
    block: int
    every: int
    pairs: bool
    response: bool


def new_buffers(classes: int, capacity: int = _SMALLEST) -> Buffers:
    """Empty buffers."""
    keys, lengths, numbers = (np.empty((2, classes, capacity), np.int64) for _ in range(3))
    return Buffers(keys, lengths, numbers, np.zeros((2, classes, 2), np.int64))


def new_waiting(capacity: int = _SMALLEST) -> Waiting:
    """Room for events that wait."""
    return Waiting(*(np.empty((2, capacity), np.int64) for _ in range(3)))


def new_progress() -> Progress:
    """Before the first event."""
    return Progress(
        np.full(2, NEVER, np.int64),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        np.full(1, NEVER, np.int64),
    )


def roomy_buffers(buffers: Buffers, extra: int) -> Buffers:
    """Buffers in which every class has room for `extra` more events.

    The same ones if there is room, and not far too much of it; else new ones of twice the need: so
    what obsolete events leave behind is taken back, and copying costs a constant per event.
    """
    stops = buffers.ends[:, :, 1]
    live = stops - buffers.ends[:, :, 0]
    needed, capacity = int(live.max()) + extra, buffers.keys.shape[2]
    if int(stops.max()) + extra <= capacity and not _is_wasteful(capacity, needed):
        return buffers
    classes = live.shape[1]
    roomy = new_buffers(classes, max(_SMALLEST, 2 * needed))
    for side, k in np.ndindex(2, classes):
        start, stop = buffers.ends[side, k]
        for old, new in zip(buffers[:3], roomy[:3], strict=True):
            new[side, k, : stop - start] = old[side, k, start:stop]
    roomy.ends[:, :, 1] = live
    return roomy


def roomy_waiting(waiting: Waiting, progress: Progress, extra: int) -> Waiting:
    """As `roomy_buffers`, for events that wait."""
    used, capacity = int(progress.waiting.max()), waiting.numbers.shape[1]
    if used + extra <= capacity and not _is_wasteful(capacity, used + extra):
        return waiting
    roomy = new_waiting(max(_SMALLEST, 2 * (used + extra)))
    for old, new in zip(waiting, roomy, strict=True):
        new[:, :used] = old[:, :used]
    return roomy


def _is_wasteful(capacity: int, needed: int) -> bool:
    """Whether room is left over from a burst, which would otherwise be held for ever."""
    return capacity > _SMALLEST and capacity > _WASTEFUL * needed
