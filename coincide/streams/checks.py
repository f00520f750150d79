"""Checks of what is pushed, one pass each."""

from __future__ import annotations

from coincide.compiled import compiled
from coincide.sides import LEFT

FINE, OUT_OF_RANGE, REVERSED, TOO_LONG, TOO_SHORT, UNKNOWN, ARRIVAL, BACKWARDS = range(8)
"""What can be wrong with an event: its time, ends, length, template, or arrival instant."""


@compiled
def first_interval_trouble(sides, lows, highs, lengths, limit):
    """The first interval that cannot be taken in.

    Parameters
    ----------
    sides, lows, highs : arrays
        As a Batch has them, with the ends of intervals.
    lengths : int64 array, shape (2, 2)
        Shortest and longest of each side, ticks.
    limit : int64
        Times lie below it and above its negative.

    Returns
    -------
    int64
        What is wrong; FINE if nothing is.
    int64
        Position of the event; their number if nothing is wrong.
    """
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
    return FINE, lows.size


@compiled
def first_template_trouble(sides, max_times, templates, counts, limit):
    """The first event of a template that cannot be taken in.

    Parameters
    ----------
    sides, max_times, templates : arrays
        As a Batch has them.
    counts : int64 array, shape (2,)
        Templates of each side.
    limit : int64
        As `first_interval_trouble`; so is what is returned.
    """
    for i in range(max_times.size):
        if not 0 <= templates[i] < counts[sides[i]]:
            return UNKNOWN, i
        if not -limit < max_times[i] < limit:
            return OUT_OF_RANGE, i
    return FINE, max_times.size


@compiled
def first_arrival_trouble(sides, arrival, clock, limit):
    """The first event whose arrival instant cannot be.

    Parameters
    ----------
    sides, arrival : arrays
        As a Batch has them.
    clock : int64 array, shape (2,)
        Latest arrival instant of each side so far.
    limit : int64
        As `first_interval_trouble`; so is what is returned.
    """
    left, right = clock[0], clock[1]
    for i in range(arrival.size):
        if not -limit < arrival[i] < limit:
            return ARRIVAL, i
        if arrival[i] < (left if sides[i] == LEFT else right):
            return BACKWARDS, i
        if sides[i] == LEFT:
            left = arrival[i]
        else:
            right = arrival[i]
    return FINE, arrival.size
