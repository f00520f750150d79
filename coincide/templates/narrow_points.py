"""Where the formula of a narrow window's probability changes: an end of it passes between buckets."""

from __future__ import annotations

from coincide.compiled import compiled


@compiled
def point_near(x, i, y, j, lo, hi, start, end, middle, jumps):
    """The point between start and end that is nearest to the middle; `start` if there is none.

    Parameters
    ----------
    x, y : Buckets
    i, j : int64
        Templates of X and of Y.
    lo, hi : int64
        The window, ticks.
    start, end, middle : int64
        Of s; the middle is between the others.
    jumps : bool
        Whether instants meet instants. There it jumps: what follows begins a piece, too.
    """
    best, nearest = start, end - start
    for a in range(x.starts[i], x.starts[i + 1]):
        for end_of_window in (lo, hi):
            for shift in range(2 if jumps else 1):
                # Points are `later` less an edge of Y, and those are sorted.
                later = end_of_window + x.edges[a] + shift
                b = _first_at_least(y, j, later - middle)
                for neighbour in (b - 1, b):
                    if y.starts[j] <= neighbour < y.starts[j + 1]:
                        point = later - y.edges[neighbour]
                        if start < point < end and abs(point - middle) < nearest:
                            best, nearest = point, abs(point - middle)
    return best


@compiled
def _first_at_least(y, j, place):
    """The first edge of a template that is not before a place; the next template's if all are."""
    low, high = y.starts[j], y.starts[j + 1]
    while low < high:
        middle = (low + high) >> 1
        if y.edges[middle] < place:
            low = middle + 1
        else:
            high = middle
    return low
