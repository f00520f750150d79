"""The arrays that kernels take, in device memory. Of a join's two sides, see `cpu_fallback.buffers`."""

from __future__ import annotations

from typing import Any, NamedTuple

from event_model.length_classes import MAX_CLASSES
from event_model.sides import LEFT


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


class Spans(NamedTuple):
    """Where base events stand among the targets.

    An *entry* is a base event and a class of targets: entry i belongs to the event i // K2 of a run of
    base events, and to the class i % K2.

    Parameters
    ----------
    first, inner, shell, last : int64 arrays, shape (entries,)
        Positions among the targets: outer first, inner first, past inner, past outer.
    """

    first: Any
    inner: Any
    shell: Any
    last: Any


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
