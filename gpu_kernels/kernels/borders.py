"""Kernels of border crossings, and the layout of their index."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types

from coincide.model.borders.crossings import IN, OUT, PASSED
from coincide.model.borders.index import LOWER, UPPER
from coincide.model.borders.moves import (
    EITHER,
    FROM_OUTSIDE,
    MOVE,
    SHORT_WALK,
    WALK,
    border_after,
    borders_walked,
    fewest_holders,
    holds_all,
    is_entered,
    lies_between,
    next_place,
    swept,
    walk_of,
)
from gpu_kernels.kernels.compilation import device_function, kernel
from gpu_kernels.kernels.join import F64_ARRAY, I8_ARRAY, I32_ARRAY, I64_ARRAY, RUN


class Values(NamedTuple):
    """Values of points, and the borders among which they lie."""

    points: Any  # float64, shape (n * d,)
    borders: Any  # float64, shape (d * 2 * N,)
    size: int  # N


VALUES = types.NamedTuple([F64_ARRAY, F64_ARRAY, types.int64], Values)


class SortedBorders(NamedTuple):
    """The borders of an index of N queries in d dimensions, but for their values."""

    keys: Any  # As `coincide.model.borders.index.Borders`
    queries: Any  # As `coincide.model.borders.index.Borders`
    levels: Any  # As `coincide.model.borders.index.Borders`
    peaks: Any  # As `coincide.model.borders.index.Borders`
    places: Any  # As `coincide.model.borders.index.Borders`
    size: int  # Keys, and peaks, of one order of one dimension: the next order's follow
    peaks_size: int  # Keys, and peaks, of one order of one dimension: the next order's follow
    dimensions: int  # d


SORTED_BORDERS = types.NamedTuple(
    [I32_ARRAY, I32_ARRAY, I64_ARRAY, I32_ARRAY, I32_ARRAY, *[types.int64] * 3], SortedBorders
)


class Moves(NamedTuple):
    """A run of points, each a move from the one before it."""

    segments: Any  # int32, shape ((lead + n) * d * 2,): how many borders are at most each value
    kinds: Any  # int8, shape (lead + n,): as `coincide.model.borders.moves` says
    lead: int  # 1: the first point is there only for the next one to move from
    first: int  # What the first of the n points is called


MOVES = types.NamedTuple([I32_ARRAY, I8_ARRAY, types.int64, types.int64], Moves)


class Sought(NamedTuple):
    """The crossings of moves, and how they are found."""

    left: bool  # Whether to find queries that are left, entered, passed through
    entered: bool  # Whether to find queries that are left, entered, passed through
    passed: bool  # Whether to find queries that are left, entered, passed through
    processing: int  # `WALK`, `PEAKS` or `EITHER`


SOUGHT = types.NamedTuple([*[types.boolean] * 3, types.int64], Sought)


class Told(NamedTuple):
    """Crossings."""

    points: Any  # int64, shape (n,)
    rows: Any  # int32, shape (n,)
    events: Any  # int8, shape (n,): as `coincide.model.borders.crossings.PointCrossings`


TOLD = types.NamedTuple([I64_ARRAY, I32_ARRAY, I8_ARRAY], Told)


_ENTERING, _HOLDING, _FIRST, _PASSING = range(4)
"""Ways to find a move's crossings: a walk in each dimension; a scan of all queries that hold the new
values in one, which may come from outside all; and a scan of all that meet what lies between."""


@kernel(VALUES, RUN, I32_ARRAY)
def locate(values, run, segments):
    """Write how many borders are at most each value, a thread for each value."""
    i = cuda.grid(1)
    if i < values.points.size:
        dimension = i - run.event_of(i) * run.classes
        for order in range(LOWER, UPPER + 1):
            first = (2 * dimension + order) * values.size
            above = border_after(values.borders, values.points[i], first, first + values.size)
            segments[2 * i + order] = above - first


@kernel(SORTED_BORDERS, MOVES, SOUGHT, types.boolean, I64_ARRAY, I64_ARRAY, TOLD)
def tell(borders, moves, sought, writes, places, retrieved, told):
    """Count or write the crossings of moves, a thread for each move.

    First comes what a move leaves, then what it enters, then what it passes through: as
    `cpu_fallback.borders.fill` does.
    """
    i = cuda.grid(1)
    if i >= places.size:
        return
    dimensions, segments = borders.dimensions, moves.segments
    kind = moves.kinds[moves.lead + i]
    after = (moves.lead + i) * 2 * dimensions
    before = after - 2 * dimensions
    at = places[i] if writes else np.int64(0)
    seen = np.int64(0)
    for event in range(OUT, PASSED + 1):
        if not _is_sought(sought, event, kind, segments, before, after, 2 * dimensions):
            continue
        # What a move leaves is what the move back enters.
        old, new = (after, before) if event == OUT else (before, after)
        way = _way_of(event, kind, segments, old, new, dimensions)
        for dimension in range(dimensions if way == _ENTERING else 1):
            run, place, stop, bound = _walk(way, dimension, segments, old, new, dimensions)
            steps, found = max(stop - place, 0), np.int64(0)
            is_walk = _is_walk(way, sought.processing, steps)
            while True:
                place = next_place(
                    borders.keys, borders.levels, borders.peaks,
                    run * borders.size, run * borders.peaks_size, place, stop, bound, is_walk,
                )  # fmt: skip
                if place >= stop:
                    break
                row = np.int64(borders.queries[run * borders.size + place])
                place += 1
                found += 1
                query = 2 * dimensions * row
                if not _is_told(
                    way, dimension, borders.places, query, segments, old, new, dimensions
                ):
                    continue
                if writes:
                    told.points[at] = moves.first + i
                    told.rows[at] = row
                    told.events[at] = event
                at += 1
            # The paper's traversal takes out all that it passes.
            seen += steps if way == _ENTERING and sought.processing == WALK else found
    if not writes:
        places[i] = at
        retrieved[i] = seen


@device_function
def _is_sought(sought, event, kind, segments, before, after, width):
    """Whether a move may have crossings of a kind, and these are asked for."""
    if event == OUT:
        asked = sought.left
    elif event == IN:
        asked = sought.entered
    else:
        asked = sought.passed
    if not asked or kind == FROM_OUTSIDE:
        return asked and event == IN
    if kind == MOVE:
        for k in range(width):
            if segments[before + k] != segments[after + k]:
                return True
    return False


@device_function
def _way_of(event, kind, segments, old, new, dimensions):
    """How the crossings of a kind are found."""
    if event == PASSED:
        return _PASSING
    if kind == FROM_OUTSIDE:
        return _FIRST
    if dimensions > 1:
        _, holders = fewest_holders(segments, new, dimensions)
        if borders_walked(segments, old, new, dimensions) > holders:
            return _HOLDING
    return _ENTERING


@device_function
def _walk(way, dimension, segments, old, new, dimensions):
    """The run of keys to look through, where to start and stop, and the bound that they must reach.

    There are two runs a dimension: by lower borders, and by upper ones.
    """
    if way == _ENTERING:
        order, place, stop, bound = walk_of(segments, old + 2 * dimension, new + 2 * dimension)
        run = 2 * dimension + order
    elif way == _PASSING:
        driving, place, stop, bound = swept(segments, old, new, dimensions)
        run = 2 * driving + LOWER
    else:
        driving, _ = fewest_holders(segments, new, dimensions)
        run = 2 * driving + LOWER
        place, stop, bound = 0, segments[new + run], segments[new + run + 1]
    return np.int64(run), np.int64(place), np.int64(stop), np.int64(bound)


@device_function
def _is_walk(way, processing, steps):
    """Whether to go from key to key, and not look at peaks."""
    return way == _ENTERING and (
        processing == WALK or (processing == EITHER and steps <= SHORT_WALK)
    )


@device_function
def _is_told(way, dimension, places, query, segments, old, new, dimensions):
    """Whether a query that was found on the way is reported."""
    if way == _ENTERING:
        return dimensions == 1 or is_entered(
            places, query, dimension, segments, old, new, dimensions
        )
    if way == _PASSING:
        return lies_between(places, query, segments, old, new, dimensions)
    return holds_all(places, query, segments, new, dimensions) and (
        way == _FIRST or not holds_all(places, query, segments, old, dimensions)
    )
