"""Checks of what is pushed, in one pass."""

from __future__ import annotations

from coincide.compiled import compiled
from coincide.sides import LEFT

FINE, OUT_OF_RANGE, REVERSED, TOO_LONG, TOO_SHORT, ARRIVAL, BACKWARDS = range(7)
"""What can be wrong with an event: its time, ends, length, or arrival instant."""


@compiled
def first_trouble(sides, lows, highs, arrival, lengths, clock, limit):
    """The first event that cannot be taken in.

    Parameters
    ----------
    sides, lows, highs, arrival : arrays
        As a Batch has them, with the ends of intervals.
    lengths : int64 array, shape (2, 2)
        Shortest and longest of each side, ticks.
    clock : int64 array, shape (2,)
        Latest arrival instant of each side so far.
    limit : int64
        Times lie below it and above its negative.

    Returns
    -------
    int64
        What is wrong; FINE if nothing is.
    int64
        Position of the event.
    """
    left, right = clock[0], clock[1]
    for i in range(lows.size):
        low, high, side = lows[i], highs[i], sides[i]
        if low <= -limit or high >= limit or low >= limit or high <= -limit:
            return OUT_OF_RANGE, i
        if low > high:
            return REVERSED, i
        if high - low > lengths[side, 1]:
            return TOO_LONG, i
        if high - low < lengths[side, 0]:
            return TOO_SHORT, i
        if arrival.size:
            if not -limit < arrival[i] < limit:
                return ARRIVAL, i
            if arrival[i] < (left if side == LEFT else right):
                return BACKWARDS, i
            if side == LEFT:
                left = arrival[i]
            else:
                right = arrival[i]
    return FINE, 0
