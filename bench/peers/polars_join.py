"""The join in Polars: `join_where`, or an equi-join on time buckets, then the closed form."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from bench.events import Condition

VARIANTS = ("join_where", "buckets")


def polars_pairs(
    left: pa.Table, right: pa.Table, condition: Condition = Condition(), variant: str = VARIANTS[0]
) -> pl.DataFrame:
    """All pairs of ids of two tables of microseconds, by one of `VARIANTS`."""
    return _pairs(left, right, condition, variant).select("id", "id_right").collect()


def polars_aggregates(
    left: pa.Table,
    right: pa.Table,
    aggregates: Sequence[pl.Expr],
    condition: Condition = Condition(),
    variant: str = VARIANTS[0],
) -> pl.DataFrame:
    """Aggregates of the matches of each left event, whose columns right alone has, by one of `VARIANTS`."""
    return _pairs(left, right, condition, variant).group_by("id").agg(*aggregates).collect()


def _pairs(left: pa.Table, right: pa.Table, condition: Condition, variant: str) -> pl.LazyFrame:
    join = _near if variant == "join_where" else _in_buckets
    candidates = join(_events(left), _events(right), condition)
    return candidates.filter(_qualifies(condition))


def _near(left: pl.LazyFrame, right: pl.LazyFrame, condition: Condition) -> pl.LazyFrame:
    near = (
        pl.col("min_time_right") <= pl.col("max_time") + condition.deadline_us,
        pl.col("max_time_right") >= pl.col("min_time") - condition.deadline_us,
    )
    return left.join_where(right, *near, suffix="_right")


def _in_buckets(left: pl.LazyFrame, right: pl.LazyFrame, condition: Condition) -> pl.LazyFrame:
    """Each right event is copied to the buckets next to its own."""
    bucket = pl.col("max_time") // condition.reach_us
    copies = pl.concat([right.with_columns(bucket=bucket + i) for i in (-1, 0, 1)])
    return left.with_columns(bucket=bucket).join(copies, on="bucket", suffix="_right")


def _events(table: pa.Table) -> pl.LazyFrame:
    length = (pl.col("max_time") - pl.col("min_time")).cast(pl.Float64).alias("length")
    return pl.DataFrame(table).lazy().with_columns(length)


def _qualifies(condition: Condition) -> pl.Expr:
    shift = (pl.col("max_time_right") - pl.col("max_time")).cast(pl.Float64)
    deadline = condition.deadline_us
    return _cdf(deadline - shift) - _cdf(-deadline - shift) >= condition.confidence - 2.0**-50


def _cdf(z: pl.Expr) -> pl.Expr:
    l1, l2 = pl.col("length"), pl.col("length_right")
    u, shorter, longer = z + l2, pl.min_horizontal(l1, l2), pl.max_horizontal(l1, l2)
    return (
        pl.when(z <= -l2)
        .then(0.0)
        .when(z >= l1)
        .then(1.0)
        .when(u <= shorter)
        .then(u * u / (2.0 * (l1 * l2)))
        .when(u <= longer)
        .then((2.0 * u - shorter) / (2.0 * longer))
        .otherwise(1.0 - (l1 - z) * (l1 - z) / (2.0 * (l1 * l2)))
    )
