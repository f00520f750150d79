"""What kernels take, and its types. Of a join's two sides, see `cpu_fallback.join.buffers`.

All arrays are in device memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from coincide.length_classes import MAX_CLASSES
from coincide.sides import LEFT

I64_ARRAY, U64_ARRAY, U8_ARRAY, F64_ARRAY = (
    types.Array(kind, 1, "C") for kind in (types.int64, types.uint64, types.uint8, types.float64)
)
I64_TABLE = types.Array(types.int64, 2, "C")
I64_CUBE = types.Array(types.int64, 3, "C")


class Base(NamedTuple):
    """Base events sorted by (group, midpoint); events of no group last.

    Parameters
    ----------
    midpoints, lengths : int64 arrays, shape (n,)
        Doubled midpoints (half ticks) and lengths (ticks).
    classes : uint8 array, shape (n,)
        Length class of each event.
    offsets : int64 array, shape (groups + 1,)
        First event of each group.
    """

    midpoints: Any
    lengths: Any
    classes: Any
    offsets: Any


BASE = types.NamedTuple([I64_ARRAY, I64_ARRAY, U8_ARRAY, I64_ARRAY], Base)


class Targets(NamedTuple):
    """Target events sorted by (class, group, key).

    Parameters
    ----------
    keys : int64 array, shape (n,)
        What they are searched by, half ticks: the midpoints themselves, or the doubled max_times.
    midpoints, lengths : int64 arrays, shape (n,)
        As `Base`.
    offsets : int64 array, shape (K2, groups + 1)
        The first event of each group within each class.
    """

    keys: Any
    midpoints: Any
    lengths: Any
    offsets: Any


TARGETS = types.NamedTuple([I64_ARRAY, I64_ARRAY, I64_ARRAY, I64_TABLE], Targets)


class Condition(NamedTuple):
    """A timing condition on T_right - T_left.

    Parameters
    ----------
    lo, hi : int
        The window, ticks.
    threshold : float
        The least probability that qualifies.
    side : int
        Of the base events: LEFT or RIGHT.
    """

    lo: int
    hi: int
    threshold: float
    side: int = LEFT


CONDITION = types.NamedTuple([types.int64, types.int64, types.float64, types.int64], Condition)


class Spans(NamedTuple):
    """Where base events stand among the targets.

    An *entry* is a base event and a class of targets: entry i belongs to the event i // K2 of a run of
    base events, and to the class i % K2.

    Parameters
    ----------
    first, inner, shell : int64 arrays, shape (entries,)
        Positions among the targets: outer first, inner first, past inner.
    """

    first: Any
    inner: Any
    shell: Any


SPANS = types.NamedUniTuple(I64_ARRAY, len(Spans._fields), Spans)

RECIPROCAL_BITS = 32
MOST_ENTRIES = (1 << RECIPROCAL_BITS) // MAX_CLASSES - 1


class Run(NamedTuple):
    """A run of base events.

    Parameters
    ----------
    start : int
        Its first event.
    classes : int
        K2.
    reciprocal : int
        2**RECIPROCAL_BITS / K2, rounded up.
    """

    start: int
    classes: int
    reciprocal: int

    @classmethod
    def of(cls, start: int, classes: int) -> Run:
        """Of at most `MOST_ENTRIES` entries, for which the reciprocal is as good as a division."""
        return cls(start, classes, -(-(1 << RECIPROCAL_BITS) // classes))


RUN = types.NamedUniTuple(types.int64, len(Run._fields), Run)


class Sorted(NamedTuple):
    """Events of a stream.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Half ticks: doubled midpoints, or doubled max_times.
    lengths : int64 array, shape (n,)
        Ticks.
    numbers : int64 array, shape (n,)
        Arrival numbers.
    """

    keys: Any
    lengths: Any
    numbers: Any


SORTED = types.NamedUniTuple(I64_ARRAY, len(Sorted._fields), Sorted)
