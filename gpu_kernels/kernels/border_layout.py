"""What kernels on border queries take, and its types. All arrays are flat and in device memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from gpu_kernels.kernels.layout import F64_ARRAY, I8_ARRAY, I32_ARRAY, I64_ARRAY


class Values(NamedTuple):
    """Values of points, and the borders among which they lie.

    Parameters
    ----------
    points : float64 array, shape (n * d,)
    borders : float64 array, shape (d * 2 * N,)
        Of each dimension the lower ones in order, and the upper ones.
    size : int
        N.
    """

    points: Any
    borders: Any
    size: int


VALUES = types.NamedTuple([F64_ARRAY, F64_ARRAY, types.int64], Values)


class SortedBorders(NamedTuple):
    """The borders of an index of N queries in d dimensions, but for their values.

    Parameters
    ----------
    keys, queries, levels, peaks, places
        As `coincide.borders.index.Borders`.
    size, peaks_size : int
        Keys, and peaks, of one order of one dimension: the next order's follow.
    dimensions : int
        d.
    """

    keys: Any
    queries: Any
    levels: Any
    peaks: Any
    places: Any
    size: int
    peaks_size: int
    dimensions: int


SORTED_BORDERS = types.NamedTuple(
    [I32_ARRAY, I32_ARRAY, I64_ARRAY, I32_ARRAY, I32_ARRAY, *[types.int64] * 3], SortedBorders
)


class Moves(NamedTuple):
    """A run of points, each a move from the one before it.

    Parameters
    ----------
    segments : int32 array, shape ((lead + n) * d * 2,)
        How many borders are at most each value.
    kinds : int8 array, shape (lead + n,)
        As `coincide.borders.moves` says.
    lead : int
        1: the first point is there only for the next one to move from. Else 0.
    first : int
        What the first of the n points is called.
    """

    segments: Any
    kinds: Any
    lead: int
    first: int


MOVES = types.NamedTuple([I32_ARRAY, I8_ARRAY, types.int64, types.int64], Moves)


class Sought(NamedTuple):
    """What is told of moves, and how it is found.

    Parameters
    ----------
    left, entered, passed : bool
        Whether queries are told that are left, entered, passed through.
    processing : int
        `WALK`, `PEAKS` or `EITHER`.
    """

    left: bool
    entered: bool
    passed: bool
    processing: int


SOUGHT = types.NamedTuple([*[types.boolean] * 3, types.int64], Sought)


class Told(NamedTuple):
    """Crossings.

    Parameters
    ----------
    points : int64 array, shape (n,)
    rows : int32 array, shape (n,)
    events : int8 array, shape (n,)
        As `coincide.borders.crossings.Found`.
    """

    points: Any
    rows: Any
    events: Any


TOLD = types.NamedTuple([I64_ARRAY, I32_ARRAY, I8_ARRAY], Told)
