"""Where values lie among borders."""

from __future__ import annotations

from coincide.compiled import compiled


@compiled(forceinline=True)
def border_after(borders, value, low, high):
    """The first place, from `low` to `high`, of a border above a value: O(log(high - low)).

    Parameters
    ----------
    borders : float64 array
        Ascending between these places.
    value : float64
    low, high : int
    """
    while low < high:
        middle = (low + high) >> 1
        if borders[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(forceinline=True)
def borders_up_to(borders, value, near):
    """How many borders are at most a value, sought from a place that is likely near: O(log distance).

    Parameters
    ----------
    borders : float64 array
        Ascending.
    value : float64
    near : int
        At least 0.
    """
    size = borders.size
    # There may have been more borders when the place was near.
    near = min(near, size)
    step = 1
    if near < size and borders[near] <= value:
        low = near + 1
        while low + step <= size and borders[low + step - 1] <= value:
            low += step
            step <<= 1
        high = min(low + step - 1, size)
    else:
        high = near
        while high >= step and borders[high - step] > value:
            high -= step
            step <<= 1
        low = max(high - step + 1, 0)
    return border_after(borders, value, low, high)
