"""One side of a Spark join: the user's DataFrame and the column expressions that make events of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from event_model.units import TIME_LIMIT
from spark_plugin.dataframes import column, ticks
from spark_plugin.time_columns import INVALID_REASONS, NOT_FINITE, TimeScale

REASONS = ("ok", "null", *INVALID_REASONS)
"""What a row can be; its index is the value of `EventFrame.reason`."""


@dataclass(frozen=True)
class EventFrame:
    """A side as events.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``.
    source : DataFrame
        As the user gave it.
    scales : (TimeScale, TimeScale)
        Of the min and the max column.
    by, payload : lists of str
        Key columns and columns to hand out.
    longest : int or None
        Declared longest length, ticks.
    """

    side: str
    source: DataFrame
    scales: tuple[TimeScale, TimeScale]
    by: list[str]
    payload: list[str]
    longest: int | None

    @property
    def min_ticks(self) -> Column:
        """min_time in ticks: bigint, null for a null; out of range for what is no time."""
        return self._ticks(0)

    @property
    def max_ticks(self) -> Column:
        """max_time in ticks, as `min_ticks`."""
        return self._ticks(1)

    @property
    def has_null_key(self) -> Column:
        """Whether a key is null: boolean, never null."""
        nulls = [column(self.source, name).isNull() for name in self.by]
        return reduce(or_, nulls, F.lit(False))

    @property
    def key_hash(self) -> Column:
        """Hash of the keys: bigint; 0 without keys."""
        if not self.by:
            return F.lit(0).cast("bigint")
        return F.xxhash64(*(column(self.source, name) for name in self.by))

    def reason(self, low: Column, high: Column, has_null_key: Column) -> Column:
        """Index in `REASONS`, from `min_ticks` and `max_ticks`: int, never null.

        A null key does not excuse an invalid time.
        """
        null = low.isNull() | high.isNull()
        return (
            F.when(self.is_ok(low, high, has_null_key), 0)
            .when(null, 1)
            .when((low == NOT_FINITE) | (high == NOT_FINITE), self._finiteness)
            .when((low <= -TIME_LIMIT) | (low >= TIME_LIMIT), 3)
            .when((high <= -TIME_LIMIT) | (high >= TIME_LIMIT), 3)
            .when(low > high, 4)
            .when(self._is_too_long(low, high), 5)
            .otherwise(1)
        )

    def is_ok(self, low: Column, high: Column, has_null_key: Column) -> Column:
        """Whether a row is an event that can match: boolean, null counts as no."""
        # Of ordered ends only the outer sides can be out of range.
        ok = (low <= high) & (low > -TIME_LIMIT) & (high < TIME_LIMIT)
        if self.by:
            ok &= ~has_null_key
        return ok if self.longest is None else ok & (high - low <= self.longest)

    def _is_too_long(self, low: Column, high: Column) -> Column:
        return F.lit(False) if self.longest is None else high - low > self.longest

    @property
    def _finiteness(self) -> int:
        floats = any(scale.column.family == "float" for scale in self.scales)
        return REASONS.index("not_finite" if floats else "range")

    def _ticks(self, i: int) -> Column:
        scale = self.scales[i]
        return ticks(column(self.source, scale.column.name), scale)
