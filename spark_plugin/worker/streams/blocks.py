"""A block of events and the live events of the other side, joined as tables are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.results import JoinCounters
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.wide_columns import stored
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.streams.horizon import Horizon

_FEW = 1 << 14
"""Events of a block: fewer are not worth a second thread, nor, by ``"auto"``, a GPU."""
_MUCH = 4
"""So many times more events than their partners' side are looked through by keys first."""
_SMALL = 1 << 20
"""Pairs at most: to decide all costs less than to choose classes."""


def join_block(
    plan: TablePlan, horizon: Horizon, left: Side, right: Side
) -> tuple[pa.Table, JoinCounters]:
    """The rows that these events make.

    Parameters
    ----------
    plan : TablePlan
    horizon : Horizon
        Of their pairs.
    left, right : Side

    Returns
    -------
    pa.Table
    JoinCounters
    """
    gives_pairs = plan.spec.how == "inner" and plan.spec.emit == "pairs"
    if gives_pairs:
        left = _near(left, right, (-horizon.last, -horizon.first))
    right = _near(right, left, (horizon.first, horizon.last))
    if not len(left) or (gives_pairs and not len(right)):
        return plan.schema.empty_table(), JoinCounters()
    emission = _sized(plan, len(left), len(right)).join(left, right)
    found = pa.Table.from_batches(emission, plan.schema)
    return found, emission.counters


def _near(side: Side, others: Side, reach: tuple[int, int]) -> Side:
    """The events of a side that may have a partner among others; the rest need not be sorted.

    Parameters
    ----------
    side, others : Side
    reach : (int, int)
        Least and largest difference of their max_times, ticks.
    """
    times = others.max_time if others.matchable is None else others.max_time[others.matchable]
    if not len(side) or not times.size:
        return side.rows(np.empty(0, np.int64))
    first, last = int(times.min()) + reach[0], int(times.max()) + reach[1]
    is_near = (side.max_time >= first) & (side.max_time <= last)
    if _MUCH * len(others) < len(side):
        for own, keys in zip(side.keys, others.keys, strict=True):
            found = pc.is_in(stored(own), value_set=_distinct(stored(keys), stored(own).type))
            is_near &= found.to_numpy(zero_copy_only=False)
    return side if is_near.all() else side.rows(np.flatnonzero(is_near))


def _distinct(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    """The distinct keys, in the type of those that they are looked for among."""
    distinct = pc.unique(keys)
    return distinct if distinct.type == kind else distinct.cast(kind)


def _sized(plan: TablePlan, left: int, right: int) -> TablePlan:
    """The plan for so many events."""
    spec = plan.spec
    if left + right < _FEW:
        spec = spec.but(threads=1, backend="cpu" if spec.backend == "auto" else spec.backend)
    if left * right < _SMALL:
        spec = spec.but(classes=1)
    return replace(plan, spec=spec)
