"""What kernels take, and its types. Of a join's two sides, see `cpu_fallback.join.buffers`.

All arrays are in device memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from coincide.shape_classes import MOST_CLASSES
from coincide.sides import LEFT
from gpu_kernels.kernels.deciding import meets

I64_ARRAY, U64_ARRAY, U16_ARRAY, U8_ARRAY, F64_ARRAY, I32_ARRAY, I8_ARRAY = (
    types.Array(kind, 1, "C")
    for kind in (
        *(types.int64, types.uint64, types.uint16, types.uint8, types.float64),
        *(types.int32, types.int8),
    )
)
I64_TABLE, F64_TABLE = (types.Array(kind, 2, "C") for kind in (types.int64, types.float64))
I64_CUBE, F64_CUBE = (types.Array(kind, 3, "C") for kind in (types.int64, types.float64))


class Base(NamedTuple):
    """Base events sorted by (group, key); events of no group last.

    Parameters
    ----------
    keys, shapes : int64 arrays, shape (n,)
        As their model gives them: `coincide.timestamps.protocol`.
    classes : uint16 array, shape (n,)
        Class of each event.
    offsets : int64 array, shape (groups + 1,)
        First event of each group.
    """

    keys: Any
    shapes: Any
    classes: Any
    offsets: Any


BASE = types.NamedTuple([I64_ARRAY, I64_ARRAY, U16_ARRAY, I64_ARRAY], Base)


class Targets(NamedTuple):
    """Target events sorted by (class, group, place).

    Parameters
    ----------
    places : int64 array, shape (n,)
        What they are searched by, half ticks: the keys themselves, or the doubled max_times.
    keys, shapes : int64 arrays, shape (n,)
        As `Base`.
    offsets : int64 array, shape (K2, groups + 1)
        The first event of each group within each class.
    """

    places: Any
    keys: Any
    shapes: Any
    offsets: Any


TARGETS = types.NamedTuple([I64_ARRAY, I64_ARRAY, I64_ARRAY, I64_TABLE], Targets)


class Sides(NamedTuple):
    """What decides the candidates of a join.

    Parameters
    ----------
    base : Base
    targets : Targets
    rule : NamedTuple
        Of the timestamps' model: `coincide.timestamps.protocol.Rule`.
    side : int
        Of the base events: LEFT or RIGHT.
    """

    base: Base
    targets: Targets
    rule: Any
    side: int = LEFT

    def takes(self, event, target):
        """Whether a candidate qualifies: `Rule.qualifies`."""
        return meets(self, event, target)


def sides_type(rule: Any) -> Any:
    """The type of `Sides` with a type of rule (`coincide.timestamps.dispatch.numba_type`)."""
    return types.NamedTuple([BASE, TARGETS, rule, types.int64], Sides)


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

RECIPROCAL_BITS = 36
MOST_ENTRIES = (1 << RECIPROCAL_BITS) // MOST_CLASSES - 1
"""So many times a reciprocal is below 2**63."""


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

    def event_of(self, entry):
        """The base event of an entry: entry // K2, by a product, since GPUs divide integers slowly."""
        return self.start + ((entry * self.reciprocal) >> RECIPROCAL_BITS)


RUN = types.NamedUniTuple(types.int64, len(Run._fields), Run)


class Sorted(NamedTuple):
    """Events of a stream.

    Parameters
    ----------
    keys : int64 array, shape (n,)
        Half ticks: as their model gives them, or doubled max_times.
    shapes : int64 array, shape (n,)
    numbers : int64 array, shape (n,)
        Arrival numbers.
    """

    keys: Any
    shapes: Any
    numbers: Any


SORTED = types.NamedUniTuple(I64_ARRAY, len(Sorted._fields), Sorted)
