"""What kernels on causes and effects take, and its types. All arrays are in device memory.

They are those of `coincide.cause_and_effect.placing`, in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from coincide.cause_and_effect.deciding import squared_gap
from coincide.cause_and_effect.points import H, X, Y, Z
from coincide.cause_and_effect.rule import PairRule
from coincide.timestamps.dispatch import numba_type
from gpu_kernels.kernels.layout import F64_CUBE, F64_TABLE, I64_ARRAY, I64_TABLE


class Placed(NamedTuple):
    """Events of one side, sorted by (bucket, time, row).

    Parameters
    ----------
    times, lengths : int64 arrays, shape (n,)
        Ticks; `lengths` is empty where all are exact instants.
    points : float64 array, shape (3 or 4, n)
        x, y, z and h; of events without places shape (0, 0).
    """

    times: Any
    lengths: Any
    points: Any


PLACED = types.NamedTuple([I64_ARRAY, I64_ARRAY, F64_TABLE], Placed)


class CausalSides(NamedTuple):
    """What decides pairs.

    Parameters
    ----------
    base, targets : Placed
        Causes and effects.
    rule : PairRule
    gap : float
        The largest |x - y|² of a pair that can qualify.
    plain : bool
        Whether within a window this is all that is asked.
    """

    base: Placed
    targets: Placed
    rule: PairRule
    gap: float
    plain: bool

    def takes(self, event, target):
        """Whether a pair in whose window on delta the effect is qualifies."""
        own, others = self.base.points, self.targets.points
        gap = dh = 0.0
        if own.shape[0] > 0:
            gap = squared_gap(
                others[X, target] - own[X, event],
                others[Y, target] - own[Y, event],
                others[Z, target] - own[Z, event],
            )
            if not gap <= self.gap:
                return False
            if own.shape[0] > H:
                dh = others[H, target] - own[H, event]
        if self.plain:
            return True
        left = right = 0
        if self.base.lengths.size > 0:
            left = self.base.lengths[event]
        if self.targets.lengths.size > 0:
            right = self.targets.lengths[target]
        delta = self.targets.times[target] - self.base.times[event]
        return self.rule.meets(gap, dh, delta, left, right)


CAUSAL_SIDES = types.NamedTuple(
    [PLACED, PLACED, numba_type(PairRule), types.float64, types.boolean], CausalSides
)


class Bucketed(NamedTuple):
    """The buckets of one side.

    Parameters
    ----------
    ranks : int64 array, shape (n,)
        What decides among simultaneous events of one stream.
    numbers : int64 array, shape (buckets,)
        Ascending.
    offsets : int64 array, shape (buckets + 1,)
        First event of each bucket.
    boxes : float64 array, shape (buckets, 2, 3)
        Least and largest x, y and z of the events of each bucket.
    """

    ranks: Any
    numbers: Any
    offsets: Any
    boxes: Any


BUCKETED = types.NamedTuple([I64_ARRAY, I64_ARRAY, I64_ARRAY, F64_CUBE], Bucketed)


class Linking(NamedTuple):
    """Which buckets hold effects of a cause's bucket, and at what deltas.

    Parameters
    ----------
    by_place : bool
        Whether links are told for each bucket, or, by cell, once for all.
    sure : bool
        Whether every pair within a window qualifies.
    self_join : bool
        Whether both sides are of one stream, of which the earlier is the cause.
    starts : int64 array, shape (buckets + 1,)
        By place: first link of each bucket of causes.
    targets : int64 array, shape (links,)
        By place: buckets of effects. By cell: numbers of their cells, less the number of the cause's.
    windows : int64 array, shape (links, 2)
        Least and most delta, ticks.
    """

    by_place: bool
    sure: bool
    self_join: bool
    starts: Any
    targets: Any
    windows: Any


LINKING = types.NamedTuple([*[types.boolean] * 3, I64_ARRAY, I64_ARRAY, I64_TABLE], Linking)


class CausalRun(NamedTuple):
    """A run of causes. An *entry* is a cause and a link of its bucket.

    Parameters
    ----------
    start : int
        Its first cause.
    begins : int64 array, shape (causes + 1,)
        First entry of each.
    events : int64 array, shape (entries,), written by `place_causes`
        Cause of each entry.
    """

    start: int
    begins: Any
    events: Any

    def event_of(self, entry):
        """The base event of an entry."""
        return self.events[entry]


CAUSAL_RUN = types.NamedTuple([types.int64, I64_ARRAY, I64_ARRAY], CausalRun)
