"""Both sides to the driver by one job, where they are small: then they need be read no second time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.options import CorrelateOptions
from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.gateway_errors import SPARK_ERRORS
from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.dataframes.events import REASONS, EventFrame
from spark_plugin.dataframes.statistics import SideStatistics
from spark_plugin.dataframes.wire_rows import told_rows
from spark_plugin.ways.broadcast.worker.small_side import sorted_table
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.arrow.time_columns import INVALID_REASONS
from spark_plugin.worker.arrow.wide_columns import one_array
from spark_plugin.worker.emission.spec import AnySpec
from spark_plugin.worker.wire.columns import CODED, TIME, UNMATCHED, WireLayout, is_left
from spark_plugin.worker.wire.sides import read_side

MOST_ROWS = 1 << 18
"""Of both sides together that are collected by themselves: an exchange would move more in less time."""
_MOST_BYTES = 32 * MOST_ROWS
"""What Spark may take both sides for, which of files is what they are on disk."""


@dataclass(frozen=True, eq=False)
class CollectedSide:
    """The rows of a side.

    Parameters
    ----------
    statistics : SideStatistics
        Of all rows, the sample being each that can match.
    table : pa.Table
        On the wire, by midpoint: events that can match, and after them those that match nothing and are
        handed out all the same.
    """

    statistics: SideStatistics
    table: pa.Table


def collected_sides(
    sides: tuple[EventFrame, EventFrame],
    spec: AnySpec,
    layout: WireLayout,
    options: CorrelateOptions,
) -> tuple[CollectedSide, CollectedSide] | None:
    """Both sides, if they are asked for or Spark takes them for small and they are; else None.

    Runs eagerly.
    """
    asked = options.way == "collect"
    if not asked and not (options.way == "auto" and options.slices is None and _look_small(sides)):
        return None
    most = None if asked else MOST_ROWS + 1
    left, right = (told_rows(side, layout, most) for side in sides)
    with spark_errors_as_ours():
        table = left.unionAll(right).toArrow()
    if not asked and (table.num_rows > MOST_ROWS or table.nbytes > options.broadcast_bytes):
        return None
    first = table.column(TIME).to_numpy()
    coded = table.column(CODED).to_numpy()
    lost = coded == UNMATCHED
    of_left = np.where(lost, first < len(REASONS), is_left(coded))
    own, others = (
        _collected(side, table.filter(pa.array(mine)), spec, layout)
        for side, mine in zip(sides, (of_left, ~of_left), strict=True)
    )
    return own, others


def _look_small(sides: tuple[EventFrame, EventFrame]) -> bool:
    """Whether Spark's own estimate says so, before anything is read."""
    if context_of(sides[0].source.sparkSession) is None:
        return False
    try:
        plans = [side.source._jdf.queryExecution().optimizedPlan() for side in sides]
        return sum(plan.stats().sizeInBytes() for plan in plans) <= _MOST_BYTES
    except SPARK_ERRORS:  # a release of Spark that says it otherwise; bad input is told of later
        return False


def _collected(
    side: EventFrame, table: pa.Table, spec: AnySpec, layout: WireLayout
) -> CollectedSide:
    """One side, of what was collected of it."""
    time, coded = (one_array(table.column(name)).to_numpy() for name in (TIME, CODED))
    lost = coded == UNMATCHED
    reasons = np.bincount(time[lost] % len(REASONS), minlength=len(REASONS)).tolist()
    of_reason = dict(zip(REASONS, reasons, strict=True))
    rounded = table.column("rounded").filter(pa.array(~lost))
    counts = SideCounts(
        rows=table.num_rows,
        unmatchable=of_reason["null"],
        invalid={reason: of_reason[reason] for reason in INVALID_REASONS if of_reason[reason]},
        rounded=pc.max(rounded).as_py() or 0.0,
    )
    kept = ~lost
    if side.side == "left" and spec.keeps_unmatched:
        kept |= lost & (time == REASONS.index("null"))
    if not kept.all():
        table = table.filter(pa.array(kept))
    names = [*layout.columns, *(["key_hash"] if side.by else [])]
    own = layout.only(side.side)
    table = sorted_table(table.select(names), own, side.side, side.times.model)
    return CollectedSide(_statistics(side, table, own, counts), table.select(layout.columns))


def _statistics(
    side: EventFrame, table: pa.Table, layout: WireLayout, counts: SideCounts
) -> SideStatistics:
    events = read_side(table, layout, side.side, side.times.model)
    count = len(events) if events.matchable is None else int(events.matchable.sum())
    lengths, first, last = events.lengths[:count], events.min_time[:count], events.max_time[:count]
    hashes = np.zeros(count, np.int64)
    if side.by:
        hashes = one_array(table.column("key_hash")).to_numpy()[:count]
    return SideStatistics(
        counts,
        shortest=int(lengths.min()) if count else 0,
        longest=int(lengths.max(initial=0)),
        midpoints=events.sort_keys[:count],
        weights=np.ones(count),
        hashes=hashes,
        partitions=np.zeros(count, np.int64),
        row_bytes=table.nbytes / max(1, table.num_rows),
        own_bytes=table.nbytes,
        first=int(first.min()) if count else 0,
        last=int(last.max()) if count else 0,
    )
