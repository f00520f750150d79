"""One pass over both sides: how many events, when, how long, how dense, and which rows are invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    """Both sides in one Spark job. Runs eagerly.

    Totals and sample are two branches of one query rather than one grouping, which costs more than
    the second look; what the two have in common, such as an exchange upstream, Spark computes once.
    """
    sides = [_rows(side) for side in (left, right)]
    parts = [
        part(rows, side)
        for side, rows in zip((left, right), sides, strict=True)
        for part in (_totals, _sample)
    ]
    table = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts).toArrow()
    return _of_side(table, "left"), _of_side(table, "right")


def _rows(events: EventFrame) -> DataFrame:
    return events.source.select(
        events.min_ticks.alias("low"),
        events.max_ticks.alias("high"),
        events.has_null_key.alias("null_key"),
        events.key_hash.alias("hash"),
    )


def _totals(rows: DataFrame, events: EventFrame) -> DataFrame:
    """One row: how many rows for each reason, and the shortest and longest length."""
    low, high, null_key = F.col("low"), F.col("high"), F.col("null_key")
    length = F.when(events.is_ok(low, high, null_key), high - low)
    reasons = rows.select(
        events.reason(low, high, null_key).alias("reason"), length.alias("length")
    )
    return reasons.agg(
        *(F.count(F.when(F.col("reason") == i, 1)).alias(name) for i, name in enumerate(REASONS)),
        F.min("length").alias("shortest"),
        F.max("length").alias("longest"),
    ).withColumn("side", F.lit(events.side))


def _sample(rows: DataFrame, events: EventFrame) -> DataFrame:
    """One row per sampled event: its number in its partition, its midpoint and its keys' hash."""
    low, high, null_key = F.col("low"), F.col("high"), F.col("null_key")
    number = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW_MASK))
    numbered = rows.withColumn("number", number)
    chosen = numbered.filter(_is_sampled(F.col("number")) & events.is_ok(low, high, null_key))
    return chosen.select(
        F.lit(events.side).alias("side"), "number", (low + high).alias("midpoint"), "hash"
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


def _of_side(table: pa.Table, side: str) -> SideStatistics:
    mine = table.filter(pc.equal(table["side"], side))
    sample = mine.filter(pc.is_valid(mine["number"])).sort_by("midpoint")
    totals = mine.filter(pc.is_null(mine["number"])).to_pylist()[0]
    counts = SideCounts(
        rows=sum(totals[reason] for reason in REASONS),
        unmatchable=totals["null"],
        invalid={reason: totals[reason] for reason in INVALID_REASONS if totals[reason]},
    )
    return SideStatistics(
        counts,
        shortest=totals["shortest"] or 0,
        longest=totals["longest"] or 0,
        midpoints=sample["midpoint"].to_numpy(),
        weights=_strides(sample["number"].to_numpy()),
        hashes=sample["hash"].to_numpy(),
    )


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
            row = bad.limit(1).collect()
            example = example_row(row[0].asDict()) if row else "none"
            messages.append(describe_invalid(events.side, reason, count, events.scales, example))
    if messages:
        raise DataError("; ".join(messages))
