"""The window in order of valid time: an array in which what has gone stays as a dead entry for a while."""

from __future__ import annotations

from coincide.causal_windows.state import (
    ENDED,
    FIRST,
    LIVES,
    NUMBER,
    NUMBERS,
    SLOTS,
    TIME,
    TIMES,
)
from cpu_fallback.causality.windowed.inner import inner


@inner(forceinline=True)
def first_from(window, time):
    """The first entry of the order whose time is at least `time`."""
    order, low, high = window.order, 0, window.counts[ENDED]
    while low < high:
        middle = (low + high) >> 1
        if order[TIMES, middle] < time:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def put_in_order(window, slot):
    """Enter a slot after all of its time and before.

    Those of later valid time are moved, which arrived before it: few, where delays are short.
    """
    counts, order = window.counts, window.order
    if counts[ENDED] == order.shape[1]:
        _compact(window)
    time, end = window.slots[TIME, slot], counts[ENDED]
    at = end
    while at > 0 and order[TIMES, at - 1] > time:
        at -= 1
    _make_room(order, at, end)
    _make_room(window.sites, at, end)
    order[TIMES, at], order[SLOTS, at], order[NUMBERS, at] = time, slot, window.slots[NUMBER, slot]
    for k in range(3):
        window.sites[k, at] = window.points[k, slot]
    counts[ENDED] += 1
    counts[FIRST] = min(counts[FIRST], at)


@inner
def earliest(window):
    """The slot of least valid time in the window; of equals the one that arrived first."""
    counts, at = window.counts, window.counts[FIRST]
    while not _lives(window, at):
        at += 1
    counts[FIRST] = at
    return window.order[SLOTS, at]


@inner
def _lives(window, at):
    return is_there(window, at) and window.slots[LIVES, window.order[SLOTS, at]] == 1


@inner
def is_there(window, at):
    """Whether an entry of the order is not dead."""
    order = window.order
    return window.slots[NUMBER, order[SLOTS, at]] == order[NUMBERS, at]


@inner
def _compact(window):
    """Drop dead entries: at least half, so that each costs a constant time."""
    kept = 0
    for at in range(window.counts[ENDED]):
        if is_there(window, at):
            for k in range(3):
                window.order[k, kept] = window.order[k, at]
                window.sites[k, kept] = window.sites[k, at]
            kept += 1
    window.counts[ENDED], window.counts[FIRST] = kept, 0


@inner
def _make_room(rows, at, end):
    """Move what is in columns at ... end by one."""
    for k in range(3):
        for column in range(end, at, -1):
            rows[k, column] = rows[k, column - 1]
