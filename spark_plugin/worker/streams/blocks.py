"""A block of events and the live events of the other side, joined as tables are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from coincide.results import JoinCounters
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.streams.horizon import Horizon

_FEW = 1 << 14
"""Events of a block: fewer are not worth a second thread, nor, by ``"auto"``, a GPU."""


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
    if gives_pairs and len(left) and len(right):
        left = _within(left, _reached(right, -horizon.last, -horizon.first))
    if len(left):
        right = _within(right, _reached(left, horizon.first, horizon.last))
    if not len(left) or (gives_pairs and not len(right)):
        return plan.schema.empty_table(), JoinCounters()
    emission = _sized(plan, len(left) + len(right)).join(left, right)
    found = pa.Table.from_batches(emission, plan.schema)
    return found, emission.counters


def _reached(side: Side, first: int, last: int) -> tuple[int, int]:
    """The max_times of the other side that events of this one can reach."""
    times = side.max_time if side.matchable is None else side.max_time[side.matchable]
    if not times.size:
        return 1, 0
    return int(times.min()) + first, int(times.max()) + last


def _within(side: Side, times: tuple[int, int]) -> Side:
    is_near = (side.max_time >= times[0]) & (side.max_time <= times[1])
    return side if is_near.all() else side.rows(np.flatnonzero(is_near))


def _sized(plan: TablePlan, events: int) -> TablePlan:
    if events >= _FEW:
        return plan
    backend = "cpu" if plan.spec.backend == "auto" else plan.spec.backend
    return replace(plan, spec=plan.spec.but(threads=1, backend=backend))
