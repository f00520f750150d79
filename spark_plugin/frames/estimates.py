"""What Spark takes a side for before anything is read, and how many bytes its rows have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.spark_errors import SPARK_ERRORS
from spark_plugin.frames.columns import quoted, wire_bytes
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_reads import KEEPING_ROWS, LOGICAL, class_of, is_made_of, plan_of

_LEAVING_ROWS = KEEPING_ROWS | {"Filter"}
"""And those that leave some of them out, whose number Spark does not know."""
_STATISTICS_SETTING = "spark.sql.cbo.enabled"
_MEASURED = frozenset((
    "org.apache.spark.sql.execution.datasources.LogicalRelation",
    "org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation",
    "org.apache.spark.sql.catalyst.catalog.HiveTableRelation",
    f"{LOGICAL}LocalRelation", f"{LOGICAL}Range",
))  # fmt: skip
"""What plans read: Spark's estimate counts the rows that are there."""
_NO_ESTIMATE = 1 << 60
"""The bytes that Spark takes for what it knows nothing of."""
_OF_ANY_ROW = 8
"""Bytes that Spark takes for a row without its columns."""
_CACHE = "org.apache.spark.sql.execution.columnar.InMemoryRelation"


@dataclass(frozen=True)
class Estimate:
    """What Spark takes rows for."""

    bytes: int
    rows: int
    is_filtered: bool = False

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(self.bytes + other.bytes, self.rows + other.rows)


def estimated_bytes(side: EventFrame) -> int | None:
    """Spark's estimate of all rows, files as large as on disk; None where it cannot be asked."""
    if context_of(side.spark) is None or side.plain.isStreaming:
        return None
    try:
        return int(side.optimized.stats().sizeInBytes())
    except SPARK_ERRORS:
        return None


def is_surely_larger(side: EventFrame, size: int) -> bool:
    """Whether what a side is read from has this many bytes, too."""
    # For a join Spark may take the product of both inputs; it knows no size of rows that a program made.
    leaves = side.optimized.collectLeaves()
    read = sum(int(leaves.apply(i).stats().sizeInBytes()) for i in range(leaves.size()))
    return size <= read < _NO_ESTIMATE


def estimate_of_rows(side: EventFrame) -> Estimate | None:
    """Spark's estimate of the needed columns of a side; None if it may be one of other rows."""
    # What filters leave it takes for all; where it multiplies statistics instead, that may be too little.
    if context_of(side.spark) is None or side.plain.isStreaming:
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
    setting = side.spark.conf.get(_STATISTICS_SETTING, None)
    return (setting or "").lower() == "true"


def _is_measured(leaf: Any) -> bool:
    name = class_of(leaf)
    if name == _CACHE:
        return bool(leaf.cacheBuilder().isCachedColumnBuffersLoaded())
    return name in _MEASURED


_TIME_BYTES = 16
_NARROW = 1 << 10


def row_bytes(side: EventFrame) -> tuple[int, str | None] | None:
    """Bytes of all rows alike, and SQL of what is each row's own; None of nested columns."""
    alike, own = _fixed_bytes(side), []
    for name in (*side.by, *side.payload, *side.tested):
        size = wire_bytes(quoted(name), side.kind_of(name))
        if size is None:
            return None
        if isinstance(size, int):
            alike += size
        else:
            own.append(size)
    return alike, " + ".join(own) or None


def are_narrow(sides: tuple[EventFrame, EventFrame]) -> bool:
    """Whether all rows are so short that a bound on their number is one on their bytes."""
    told = [row_bytes(side) for side in sides]
    return all(size is not None and size[1] is None and size[0] <= _NARROW for size in told)


def about_bytes(side: EventFrame) -> tuple[int, str | None]:
    """As `row_bytes`, nested columns as long as their text would be."""
    told = row_bytes(side)
    if told is not None:
        return told
    names = ", ".join(quoted(name) for name in (*side.by, *side.payload, *side.tested))
    return _fixed_bytes(side), f"octet_length(to_json(struct({names})))"


def _fixed_bytes(side: EventFrame) -> int:
    return _TIME_BYTES + 8 * (side.coordinates + 2 * bool(side.identity))
