"""The join in Polars: `join_where` on two inequalities, then the closed form."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from bench.events import CONFIDENCE, DEADLINE_US


def polars_pairs(left: pa.Table, right: pa.Table) -> int:
    """Make all pairs of ids; their number.

    Parameters
    ----------
    left, right : pa.Table
        ``id``, ``min_time``, ``max_time``: int64, microseconds.
    """
    near = (
        pl.col("min_time_right") <= pl.col("max_time") + DEADLINE_US,
        pl.col("max_time_right") >= pl.col("min_time") - DEADLINE_US,
    )
    pairs = _events(left).join_where(_events(right), *near, suffix="_right").filter(_qualifies())
    return pairs.select("id", "id_right").collect().height


def _events(table: pa.Table) -> pl.LazyFrame:
    length = (pl.col("max_time") - pl.col("min_time")).cast(pl.Float64).alias("length")
    return pl.DataFrame(table).lazy().with_columns(length)


def _qualifies() -> pl.Expr:
    shift = (pl.col("max_time_right") - pl.col("max_time")).cast(pl.Float64)
    return _cdf(DEADLINE_US - shift) - _cdf(-DEADLINE_US - shift) >= CONFIDENCE - 2.0**-50


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
