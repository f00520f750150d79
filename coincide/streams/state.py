"""What a correlator keeps: events not yet processed, and how far the streams have come.

Arrays have a leading axis of two, the sides. Kernels write into them; only Python makes new ones.
"""

from __future__ import annotations

import numpy as np

from coincide.streams.shared import NEVER, Progress, Waiting

SMALLEST = 1024
"""Events for which there is room at least."""
_WASTEFUL = 8


def new_waiting(capacity: int = SMALLEST) -> Waiting:
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


def roomy_waiting(waiting: Waiting, progress: Progress, extra: int) -> Waiting:
    """Room for `extra` more events that wait: the same if there is room, and not far too much of it."""
    used, capacity = int(progress.waiting.max()), waiting.numbers.shape[1]
    if used + extra <= capacity and not is_wasteful(capacity, used + extra):
        return waiting
    roomy = new_waiting(max(SMALLEST, 2 * (used + extra)))
    for old, new in zip(waiting, roomy, strict=True):
        new[:, :used] = old[:, :used]
    return roomy


def is_wasteful(capacity: int, needed: int) -> bool:
    """Whether room is left over from a burst, which would otherwise be held for ever."""
    return capacity > SMALLEST and capacity > _WASTEFUL * needed
