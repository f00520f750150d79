"""A block of events and the live events of the other side, joined as tables are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from coincide.results import JoinCounters
from spark_plugin.worker.join import TablePlan
from spark_plugin.worker.streams.horizon import Horizon
from spark_plugin.worker.streams.live import Part

_FEW = 1 << 14
"""Events of a block: fewer are not worth a second thread, nor, by ``"auto"``, a GPU."""
_SMALL = 1 << 20
"""Pairs of equal keys within reach, by estimate: to decide fewer costs less than to choose classes."""


def join_block(
    plan: TablePlan, horizon: Horizon, left: Part, right: Part
) -> tuple[pa.Table, JoinCounters]:
    """The rows that these events make, and what was looked at for them."""
    gives_pairs = plan.spec.how == "inner" and plan.spec.emit == "pairs"
    if not len(left) or (gives_pairs and not len(right)):
        return plan.schema.empty_table(), JoinCounters()
    emission = sized(plan, horizon, left, right).join(left.side, right.side)
    found = pa.Table.from_batches(emission, plan.schema)
    return found, emission.counters


def sized(plan: TablePlan, horizon: Horizon, left: Part, right: Part) -> TablePlan:
    """The plan for so many events."""
    spec = plan.spec
    if len(left) + len(right) < _FEW:
        spec = spec.but(threads=1, backend="cpu" if spec.backend == "auto" else spec.backend)
    keys = max(1, np.unique(min(left.marks, right.marks, key=len)).size)
    if len(left) * len(right) * _share_in_reach(horizon, left, right) < _SMALL * keys:
        spec = spec.but(classes=1)
    return replace(plan, spec=spec)


def _share_in_reach(horizon: Horizon, left: Part, right: Part) -> float:
    """About which part of all pairs is near enough in time to qualify."""
    times = max(left.side.max_time, right.side.max_time, key=len)
    if not times.size:
        return 1.0
    return min(1.0, (horizon.last - horizon.first) / max(1, int(times.max()) - int(times.min())))
