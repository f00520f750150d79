"""Events of one query and stream at equal midpoints, put in an order in which I and O alternate."""

from __future__ import annotations

import numpy as np

from coincide.borders.crossings import OUT
from coincide.compiled import compiled

NONE = -1
"""In place of the kind of an event where there is none."""


def alternating_order(
    keys: np.ndarray, midpoints: np.ndarray, kinds: np.ndarray, before: int
) -> np.ndarray:
    """The order of events whose rows have none of their own.

    Of events at one midpoint, the first is of the kind that the one before them is not. Where none is
    before them, it is of the kind of which there are more, and an I where there are as many: a stream
    that is seen for the first time as it goes through a region comes from outside. From there on kinds
    alternate as long as there are both, and those of one kind stay as they come.

    Parameters
    ----------
    keys, midpoints : int64 arrays, shape (n,)
        Equal ones next to each other.
    kinds : int8 array, shape (n,)
        `OUT` or `IN`; at one midpoint all `OUT` come first.
    before : int
        Kind of the event before the first one, if it is of its key; else `NONE`.

    Returns
    -------
    int64 array, shape (n,)
    """
    order = np.empty(keys.size, np.int64)
    _alternate(keys, midpoints, kinds, before, order)
    return order


@compiled
def _alternate(
    keys: np.ndarray, midpoints: np.ndarray, kinds: np.ndarray, before: int, order: np.ndarray
) -> None:
    start, last = 0, before
    while start < keys.size:
        if start > 0 and keys[start] != keys[start - 1]:
            last = NONE
        stop = middle = start
        while (
            stop < keys.size and keys[stop] == keys[start] and midpoints[stop] == midpoints[start]
        ):
            if kinds[stop] == OUT:
                middle += 1
            stop += 1
        out, into = start, middle
        wants_in = stop - middle >= middle - start if last == NONE else last == OUT
        for place in range(start, stop):
            if into < stop and (wants_in or out == middle):
                order[place] = into
                into += 1
                wants_in = False
            else:
                order[place] = out
                out += 1
                wants_in = True
        last = kinds[order[stop - 1]]
        start = stop
