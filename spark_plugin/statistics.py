"""One pass over both sides: how many events, when, how long, how dense, and which rows are invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from event_model.errors import DataError
from spark_plugin.events import REASONS, EventFrame
from spark_plugin.tables import SideCounts, example_row
from spark_plugin.time_columns import INVALID_REASONS, describe_invalid

_SAMPLE_TIERS = ((256, 1), (1 << 12, 16), (1 << 16, 128), (1 << 20, 1024))
"""Rows of a partition up to a position are sampled every so many: few rows whole, many rows thinly."""
_LAST_STRIDE = 8192
_ROW_MASK = (1 << 33) - 1
"""Bits of `monotonically_increasing_id` that count the rows of a partition."""


@dataclass(frozen=True, eq=False)
class SideStatistics:
    """What is known of one side before slices are cut.

    Parameters
    ----------
    counts : SideCounts
    shortest, longest : int
        rho and pi of the valid events, ticks; 0 without events.
    midpoints : int64 array, shape (samples,), ascending
        Doubled midpoints of a sample, half ticks.
    weights : float64 array, shape (samples,)
        Events for which each sample stands.
    hashes : int64 array, shape (samples,)
        Hash of the keys of each sample, 0 without keys.
    """

    counts: SideCounts
    shortest: int
    longest: int
    midpoints: np.ndarray
    weights: np.ndarray
    hashes: np.ndarray

    @property
    def matchable(self) -> int:
        """Events that can match."""
        return self.counts.rows - self.counts.unmatchable - self.counts.dropped


def measure(left: EventFrame, right: EventFrame) -> tuple[SideStatistics, SideStatistics]:
    """Both sides in one Spark job that looks at each row once. Runs eagerly.

    One group per side and reason, and one per sampled event. The key is a single bigint, which keeps
    the aggregate in Spark's fastest path: the reason, or for a sampled event its number above all
    reasons; doubled, with the side as the last bit.
    """
    wanted = [
        F.count(F.lit(1)).alias("rows"),
        F.min("length").alias("shortest"),
        F.max("length").alias("longest"),
        F.max("sample").alias("midpoint"),
    ]
    if left.by:
        wanted.append(F.max("hash").alias("hash"))
    rows = _keyed(left, 0).unionAll(_keyed(right, 1))
    table = rows.groupBy("group").agg(*wanted).toArrow()
    return _of_side(table, 0), _of_side(table, 1)


def _keyed(events: EventFrame, side: int) -> DataFrame:
    """Per row its group, its length, and if it is in the sample its midpoint and its keys' hash."""
    low, high, null_key = F.col("low"), F.col("high"), F.col("null_key")
    rows = events.source.select(
        events.min_ticks.alias("low"),
        events.max_ticks.alias("high"),
        events.has_null_key.alias("null_key"),
        events.key_hash.alias("hash"),
        F.monotonically_increasing_id().alias("number"),
    )
    ok = events.is_ok(low, high, null_key)
    row = F.col("number").bitwiseAND(F.lit(_ROW_MASK))
    chosen = _is_sampled(row) & ok
    reason = events.reason(low, high, null_key)
    group = F.when(chosen, F.col("number") + len(REASONS)).otherwise(reason)
    return rows.select(
        (group * 2 + side).alias("group"),
        F.when(ok, high - low).alias("length"),
        F.when(chosen, low + high).alias("sample"),
        F.when(chosen, F.col("hash")).alias("hash"),
    )


def _is_sampled(row: Column) -> Column:
    """Whether a row is in the sample, by its number in its partition."""
    rest = row % _LAST_STRIDE == 0
    for limit, stride in reversed(_SAMPLE_TIERS):
        rest = F.when(row < limit, row % stride == 0).otherwise(rest)
    return rest


def _strides(row: np.ndarray) -> np.ndarray:
    """Rows for which each sampled row stands: float64 array."""
    tiers = [row < limit for limit, _ in _SAMPLE_TIERS]
    return np.select(tiers, [float(stride) for _, stride in _SAMPLE_TIERS], float(_LAST_STRIDE))


def _of_side(table: pa.Table, side: int) -> SideStatistics:
    data = {name: _numbers(table, name) for name in table.column_names}
    mine = data["group"] % 2 == side
    data = {name: values[mine] for name, values in data.items()}
    group = data["group"] // 2
    sampled = group >= len(REASONS)
    reasons = np.where(sampled, REASONS.index("ok"), group)
    rows = np.zeros(len(REASONS), np.int64)
    np.add.at(rows, reasons, data["rows"])
    of_reason = dict(zip(REASONS, rows.tolist(), strict=True))
    ok = reasons == REASONS.index("ok")
    order = np.flatnonzero(sampled)
    order = order[np.argsort(data["midpoint"][order], kind="stable")]
    return SideStatistics(
        SideCounts(
            rows=sum(of_reason.values()),
            unmatchable=of_reason["null"],
            invalid={reason: of_reason[reason] for reason in INVALID_REASONS if of_reason[reason]},
        ),
        shortest=int(data["shortest"][ok].min()) if ok.any() else 0,
        longest=int(data["longest"][ok].max(initial=0)),
        midpoints=data["midpoint"][order],
        weights=_strides((group[order] - len(REASONS)) & _ROW_MASK),
        hashes=data["hash"][order] if "hash" in data else np.zeros(order.size, np.int64),
    )


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).combine_chunks().fill_null(0).to_numpy(zero_copy_only=False)


def _example(names: Sequence[str], bad: DataFrame) -> str:
    """The first row in words. Spark spells it: Python has no dates beyond the year 9999."""
    plain = bad.toDF(*(f"column{i}" for i in range(len(names))))
    spelled = plain.select(*(F.col(name).cast("string") for name in plain.columns))
    rows = spelled.limit(1).collect()
    return example_row(dict(zip(names, rows[0], strict=True))) if rows else "none"


def refuse_invalid(sides: Sequence[EventFrame], statistics: Sequence[SideStatistics]) -> None:
    """Raise if rows are invalid, with the count and one example.

    Raises
    ------
    DataError
    """
    messages = []
    for events, found in zip(sides, statistics, strict=True):
        for reason, count in found.counts.invalid.items():
            found_reason = events.reason(events.min_ticks, events.max_ticks, events.has_null_key)
            bad = events.source.filter(found_reason == REASONS.index(reason))
            example = _example(events.source.columns, bad)
            messages.append(describe_invalid(events.side, reason, count, events.scales, example))
    if messages:
        raise DataError("; ".join(messages))
