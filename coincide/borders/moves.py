"""Which queries a move enters: what both backends compile.

A stream moves from a reading to the next. What it leaves is what the move back enters, so that entering is
all there is to find. Lemma 1 of the BMQ paper walks all borders between the two values and cancels the
queries that were passed through; here each border's key says at once whether its query holds the new value,
and a long walk is taken by peaks, in O(log N + found).

In d dimensions a query is entered by the first dimension in which its range held not the old value. A walk
in each dimension finds it (the paper's Figure 6), or a look at all queries that hold the new value in one
dimension: whichever has fewer borders on its way. The other dimensions are checked until one says no.

Arrays are flat, and points and queries are given by where theirs begin in `segments` and `places`: a view
of an array costs more than what is done with it.
"""

from __future__ import annotations

from coincide.borders.index import LOWER, UPPER
from coincide.borders.peaks import next_reaching
from coincide.compiled import compiled

FIRST, FROM_OUTSIDE, MOVE = 0, 1, 2
"""Kind of a point: the first of its stream, silent; the first, come from outside all ranges; a move from
the point before it."""

SHORT_WALK = 64
"""Borders that are walked one by one before peaks are asked."""

WALK, PEAKS, EITHER = 0, 1, 2
"""Processing: the paper's traversal, three-sided reporting, or by the length of the walk."""


@compiled(forceinline=True)
def is_held(places, query, segments, value):
    """Whether a query's range holds a value, in the dimension in which both are given.

    Parameters
    ----------
    places : int32 array
        `Borders.places`.
    query : int
        Where the two places of the query's borders lie.
    segments : int32 array
        How many lower and upper borders there are up to each value.
    value : int
        Where the two numbers of the value lie.
    """
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
    """The dimension in which fewest queries hold a value, and how many.

    They are the lower borders up to it, less the upper ones.
    """
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
    """The queries that meet what lies between two points, in the dimension in which these are fewest.

    Their dimension, where they begin and end in the order of lower borders, and the bound that their keys
    reach.
    """
    best, start, stop, bound = 0, 0, 0, 0
    for dimension in range(dimensions):
        a, b = before + 2 * dimension, after + 2 * dimension
        high = max(segments[a + LOWER], segments[b + LOWER])
        low = min(segments[a + UPPER], segments[b + UPPER])
        if dimension == 0 or high - low < stop - bound:
            best, stop, bound = dimension, high, low
    if dimensions == 1:
        # Of one dimension, what holds the lower value holds an end of the move.
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
