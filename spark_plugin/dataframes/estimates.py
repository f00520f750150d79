"""What Spark takes a side for, before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS
from spark_plugin.dataframes.columns import quoted
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.plans import KEEPING_ROWS, LOGICAL, class_of, is_made_of, plan_of

_LEAVING_ROWS = KEEPING_ROWS | {"Filter"}
"""And those that leave some of them out, of which Spark knows no number."""
_STATISTICS_SETTING = "spark.sql.cbo.enabled"
_MEASURED = frozenset((
    "org.apache.spark.sql.execution.datasources.LogicalRelation",
    "org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation",
    "org.apache.spark.sql.catalyst.catalog.HiveTableRelation",
    f"{LOGICAL}LocalRelation", f"{LOGICAL}Range",
))  # fmt: skip
"""What plans read, and Spark's estimate of it is of the rows that are there."""
_NO_ESTIMATE = 1 << 60
"""So many bytes Spark takes for what it knows nothing of."""
_OF_ANY_ROW = 8
"""Bytes that Spark takes a row for besides its columns."""
_CACHE = "org.apache.spark.sql.execution.columnar.InMemoryRelation"


@dataclass(frozen=True)
class Estimate:
    """What Spark takes rows for.

    Parameters
    ----------
    bytes, rows : int
    is_filtered : bool
        Whether a filter may leave any part of them.
    """

    bytes: int
    rows: int
    is_filtered: bool = False

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.bytes + other.bytes, self.rows + other.rows)


def estimated_bytes(side: EventFrame) -> int | None:
    """Spark's estimate of all rows as the user gave them; files it takes for as large as on disk.

    None where it cannot be asked: on Spark Connect, of streams, and of a plan that cannot be, of which
    the ordinary way tells.
    """
    if context_of(side.source.sparkSession) is None or side.plain.isStreaming:
        return None
    try:
        return int(side.optimized.stats().sizeInBytes())
    except SPARK_ERRORS:
        return None


def is_surely_larger(side: EventFrame, size: int) -> bool:
    """Whether what a side is read from has so many bytes, too.

    Of a join Spark may take the product of both inputs for its size, of which few rows can be left; and of
    rows that somebody's program has made it knows no size.
    """
    leaves = side.optimized.collectLeaves()
    read = sum(int(leaves.apply(i).stats().sizeInBytes()) for i in range(leaves.size()))
    return size <= read < _NO_ESTIMATE


def estimate_of_rows(side: EventFrame) -> Estimate | None:
    """Spark's estimate of the columns that are needed of a side; None if it may be one of other rows.

    What filters leave it takes for all that they are given. Where it multiplies what statistics say of
    columns instead, that may be far too little, and there is none. Of a checkpoint, and of a cache that is
    not computed yet, it is that of what these were made from.
    """
    if context_of(side.source.sparkSession) is None or side.plain.isStreaming:
        return None
    needed = side.plain.selectExpr(*map(quoted, side.needed))
    try:
        plan = plan_of(needed)
        leaves = plan.collectLeaves()
        if not all(_is_measured(leaves.apply(i)) for i in range(leaves.size())):
            return None
        is_filtered = not is_made_of(plan, KEEPING_ROWS)
        if is_filtered and (_multiplies(side) or not is_made_of(plan, _LEAVING_ROWS)):
            return None
        size = int(plan.stats().sizeInBytes())
        rows = size // (needed._jdf.schema().defaultSize() + _OF_ANY_ROW)
        return Estimate(size, rows, is_filtered)
    except SPARK_ERRORS:
        return None


def _multiplies(side: EventFrame) -> bool:
    setting = side.source.sparkSession.conf.get(_STATISTICS_SETTING, None)
    return (setting or "").lower() == "true"


def _is_measured(leaf: Any) -> bool:
    name = class_of(leaf)
    if name == _CACHE:
        return bool(leaf.cacheBuilder().isCachedColumnBuffersLoaded())
    return name in _MEASURED
