"""Which queries a move enters: what both backends compile."""

from __future__ import annotations

from coincide.model.borders.index import LOWER, UPPER, next_reaching
from coincide.model.compiled import compiled

FIRST, FROM_OUTSIDE, MOVE = 0, 1, 2
"""Kind of a point: the first of its stream, silent; the first, come from outside all ranges; a move from
the point before it."""

SHORT_WALK = 64
"""Borders that are walked one by one before peaks are asked."""

WALK, PEAKS, EITHER = 0, 1, 2
"""Processing: the paper's traversal, three-sided reporting, or by the length of the walk."""


@compiled(forceinline=True)
def is_held(places, query, segments, value):
    """Whether a query's range holds a value, in the dimension in which both are given."""
    return (
        places[query + LOWER] < segments[value + LOWER]
        and places[query + UPPER] >= segments[value + UPPER]
    )


@compiled(forceinline=True)
def holds_all(places, query, segments, point, dimensions):
    """Whether a query's ranges hold a point in all dimensions."""
    for k in range(0, 2 * dimensions, 2):  # noqa: SIM110  Numba compiles no generators
        if not is_held(places, query + k, segments, point + k):
            return False
    return True


@compiled(forceinline=True)
def walk_of(segments, before, after):
    """The order to walk in, the places to start and stop at, and the bound that keys must reach."""
    lower, upper = segments[after + LOWER], segments[after + UPPER]
    if lower > segments[before + LOWER] or upper > segments[before + UPPER]:
        return LOWER, segments[before + LOWER], lower, upper
    return UPPER, upper, segments[before + UPPER], -lower


@compiled(forceinline=True)
def is_entered(places, query, driving, segments, before, after, dimensions):
    """Whether a query that a walk in one dimension has entered is entered as a whole, and not yet told."""
    for dimension in range(dimensions):
        k = 2 * dimension
        if dimension != driving and not (
            is_held(places, query + k, segments, after + k)
            and (dimension > driving or is_held(places, query + k, segments, before + k))
        ):
            return False
    return True


@compiled(forceinline=True)
def fewest_holders(segments, after, dimensions):
    """The dimension in which fewest queries hold a value, and how many."""
    # They are the lower borders up to it, less the upper ones.
    best, fewest = 0, segments[after + LOWER] - segments[after + UPPER]
    for dimension in range(1, dimensions):
        k = after + 2 * dimension
        holders = segments[k + LOWER] - segments[k + UPPER]
        if holders < fewest:
            best, fewest = dimension, holders
    return best, fewest


@compiled(forceinline=True)
def borders_walked(segments, before, after, dimensions):
    """How many borders the walks in all dimensions pass, none more than hold the new value."""
    walked = 0
    for k in range(0, 2 * dimensions, 2):
        _, start, stop, _ = walk_of(segments, before + k, after + k)
        walked += min(stop - start, segments[after + k + LOWER] - segments[after + k + UPPER])
    return walked


@compiled(forceinline=True)
def swept(segments, before, after, dimensions):
    """The queries that meet what lies between two points, in the dimension in which these are fewest."""
    # Their dimension, where they begin and end in the order of lower borders, and the bound that
    # their keys reach.
    best, start, stop, bound = 0, 0, 0, 0
    for dimension in range(dimensions):
        a, b = before + 2 * dimension, after + 2 * dimension
        high = max(segments[a + LOWER], segments[b + LOWER])
        low = min(segments[a + UPPER], segments[b + UPPER])
        if dimension == 0 or high - low < stop - bound:
            best, stop, bound = dimension, high, low
    if dimensions == 1:
        # In one dimension, what holds the lower value holds an end of the move.
        start = min(segments[before + LOWER], segments[after + LOWER])
    return best, start, stop, bound


@compiled(forceinline=True)
def lies_between(places, query, segments, before, after, dimensions):
    """Whether a query's ranges meet what lies between two points in all dimensions, and hold neither."""
    for k in range(0, 2 * dimensions, 2):
        a, b = before + k, after + k
        if not (
            places[query + k + LOWER] < max(segments[a + LOWER], segments[b + LOWER])
            and places[query + k + UPPER] >= min(segments[a + UPPER], segments[b + UPPER])
        ):
            return False
    return not holds_all(places, query, segments, before, dimensions) and not holds_all(
        places, query, segments, after, dimensions
    )


@compiled(forceinline=True)
def next_place(keys, levels, peaks, origin, peaks_origin, place, stop, bound, is_walk):
    """The next place of a walk whose key reaches the bound; `stop` at its end."""
    if is_walk:
        while place < stop and keys[origin + place] < bound:
            place += 1
        return place
    return next_reaching(keys, levels, peaks, origin, peaks_origin, place, stop, bound)


@compiled(forceinline=True)
def border_after(borders, value, low, high):
    """The first place, from `low` to `high`, of a border above a value: O(log(high - low))."""
    while low < high:
        middle = (low + high) >> 1
        if borders[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(forceinline=True)
def borders_up_to(borders, value, near):
    """How many borders are at most a value, sought from a place that is likely near: O(log distance)."""
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
