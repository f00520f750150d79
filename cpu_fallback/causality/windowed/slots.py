"""Lists of the tuples in a window by arrival and by class, and a heap of them by distance."""

from __future__ import annotations

from coincide.causal_windows.state import (
    AFTER,
    BEFORE,
    CLASS,
    FIRST_KIN,
    FIRST_TIME,
    HEAP,
    HOME,
    KIN_AFTER,
    KIN_BEFORE,
    LAST_KIN,
    LAST_TIME,
    LIVE,
    LONG_AGO,
    NEWEST,
    NUMBER,
    OLDEST,
    PLACE,
    TIME,
    UNTIL,
)
from cpu_fallback.causality.windowed.inner import inner


@inner
def enter_last(window, slot):
    """Enter a tuple in the list by arrival."""
    counts, slots = window.counts, window.slots
    last = counts[NEWEST]
    slots[BEFORE, slot], slots[AFTER, slot] = last, -1
    if last >= 0:
        slots[AFTER, last] = slot
    else:
        counts[OLDEST] = slot
    counts[NEWEST] = slot


@inner
def leave_arrivals(window, slot):
    """Take a tuple out of the list by arrival."""
    counts, slots = window.counts, window.slots
    before, after = slots[BEFORE, slot], slots[AFTER, slot]
    if before >= 0:
        slots[AFTER, before] = after
    else:
        counts[OLDEST] = after
    if after >= 0:
        slots[BEFORE, after] = before
    else:
        counts[NEWEST] = before


@inner
def enter_class(window, slot):
    """Enter a tuple among those of its class, by valid time and arrival."""
    slots, own = window.slots, window.slots[CLASS, slot]
    after, before = -1, window.classes[LAST_KIN, own]
    while before >= 0 and slots[TIME, before] > slots[TIME, slot]:
        after, before = before, slots[KIN_BEFORE, before]
    slots[KIN_BEFORE, slot], slots[KIN_AFTER, slot] = before, after
    _link(window, own, before, after, slot, slot)


@inner
def leave_class(window, slot):
    """Take a tuple out of those of its class."""
    slots = window.slots
    before, after = slots[KIN_BEFORE, slot], slots[KIN_AFTER, slot]
    _link(window, slots[CLASS, slot], before, after, after, before)


@inner
def _link(window, own, before, after, next_one, previous):
    """Say what comes after one of a class, and before another; -1 is an end of the list."""
    window.classes[UNTIL, own] = LONG_AGO
    if before >= 0:
        window.slots[KIN_AFTER, before] = next_one
    else:
        window.classes[FIRST_KIN, own] = next_one
        window.classes[FIRST_TIME, own] = window.slots[TIME, max(next_one, 0)]
    if after >= 0:
        window.slots[KIN_BEFORE, after] = previous
    else:
        window.classes[LAST_KIN, own] = previous
        window.classes[LAST_TIME, own] = window.slots[TIME, max(previous, 0)]


@inner
def enter_heap(window, slot):
    """Enter a tuple in the heap, of as many as are in the window without it."""
    at = window.counts[LIVE]
    window.slots[HEAP, at], window.slots[PLACE, slot] = slot, at
    _rise(window, at)


@inner
def leave_heap(window, slot):
    """Take a tuple out of the heap, of as many as are in the window with it."""
    at, last = window.slots[PLACE, slot], window.counts[LIVE] - 1
    moved = window.slots[HEAP, last]
    window.slots[HEAP, at], window.slots[PLACE, moved] = moved, at
    if at < last:
        _rise(window, at)
        _sink(window, window.slots[PLACE, moved], last)


@inner
def _goes_before(window, a, b):
    """Whether a slot is nearer than another, or as near and arrived before it."""
    near, far = window.points[HOME, a], window.points[HOME, b]
    return near < far or (near == far and window.slots[NUMBER, a] < window.slots[NUMBER, b])


@inner
def _swap(window, a, b):
    slots = window.slots
    own, other = slots[HEAP, a], slots[HEAP, b]
    slots[HEAP, a], slots[HEAP, b] = other, own
    slots[PLACE, other], slots[PLACE, own] = a, b


@inner
def _rise(window, at):
    while at > 0 and _goes_before(
        window, window.slots[HEAP, at], window.slots[HEAP, (at - 1) >> 1]
    ):
        _swap(window, at, (at - 1) >> 1)
        at = (at - 1) >> 1


@inner
def _sink(window, at, size):
    while True:
        least = at
        for child in range(2 * at + 1, min(2 * at + 3, size)):
            if _goes_before(window, window.slots[HEAP, child], window.slots[HEAP, least]):
                least = child
        if least == at:
            return
        _swap(window, at, least)
        at = least
