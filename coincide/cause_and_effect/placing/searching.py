"""Searching sorted arrays from where the last search ended."""

from __future__ import annotations

from coincide.compiled import compiled


@compiled(allocates=True)
def gallop(values, at, end, bound):
    """The first position from `at` on, before `end`, of a value that is at least `bound`, or `end`.

    Parameters
    ----------
    values : int64 array, ascending from `at` to `end`
    at, end, bound : int64

    Returns
    -------
    int64
    """
    if at >= end or values[at] >= bound:
        return at
    step = 1
    while at + step < end and values[at + step] < bound:
        at += step
        step *= 2
    low, high = at, min(at + step, end)  # below the bound, and not
    while high - low > 1:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle
        else:
            high = middle
    return high
