"""The join in hand-written Spark SQL: an equi-join on time buckets, then the closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.events import Condition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.model.options import Emit

_SHIFT = "CAST(r.latest - l.latest AS DOUBLE)"
PLAIN = "planner's choice"
"""The variant without a hint."""
_HINTS = {
    PLAIN: None,
    "shuffled hash join": "shuffle_hash",
    "sort-merge join": "merge",
    "broadcast join": "broadcast",
}


def _cdf(z: str) -> str:
    """The trapezoid as a SQL expression; all values are whole doubles below 2**53."""
    l1, l2 = "l.length", "r.length"
    u, v = f"({z} + {l2})", f"({l1} - {z})"
    shorter, longer = f"least({l1}, {l2})", f"greatest({l1}, {l2})"
    return f"""CASE
        WHEN {z} <= -{l2} THEN 0D
        WHEN {z} >= {l1} THEN 1D
        WHEN {u} <= {shorter} THEN {u} * {u} / (2D * ({l1} * {l2}))
        WHEN {u} <= {longer} THEN (2D * {u} - {shorter}) / (2D * {longer})
        ELSE 1D - {v} * {v} / (2D * ({l1} * {l2}))
    END"""


def _qualifies(condition: Condition) -> str:
    upper, lower = (
        _cdf(f"({bound}D - {_SHIFT})") for bound in (condition.deadline_us, -condition.deadline_us)
    )
    return f"{upper} - {lower} >= {condition.confidence}D - power(2D, -50)"


def variants(*, broadcast: bool) -> list[str]:
    """Names of the ways to write the join; broadcasts only where a side is small."""
    return [name for name in _HINTS if broadcast or name != "broadcast join"]


def sql_join(
    left: DataFrame,
    right: DataFrame,
    emit: Emit,
    variant: str,
    condition: Condition = Condition(),
) -> DataFrame:
    """The join by one of `variants`, with the columns that `correlate` gives."""
    from pyspark.sql import functions as F

    pairs = _joined(left, right, variant, condition).selectExpr(
        "l.id AS left_id", "r.id AS right_id"
    )
    if emit == "counts":
        return pairs.groupBy("left_id").agg(F.count("*").alias("matches"))
    if emit == "lists":
        return pairs.groupBy("left_id").agg(F.collect_list("right_id").alias("right_id"))
    return pairs


def sql_aggregates(
    left: DataFrame,
    right: DataFrame,
    selected: str,
    variant: str,
    condition: Condition = Condition(),
) -> DataFrame:
    """Aggregates of the matches ``r`` of each left event by one of `variants`; columns as ``selected``."""
    from pyspark.sql import functions as F

    pairs = _joined(left, right, variant, condition)
    columns = [F.expr(text) for text in selected.split(", ")]
    return pairs.groupBy(F.col("l.id").alias("left_id")).agg(*columns)


def sql_stream_join(
    left: DataFrame,
    right: DataFrame,
    delay_us: int,
    condition: Condition,
) -> DataFrame:
    """The pairs of two streams by key: Spark's stream-stream join within reach, then the closed form."""
    from pyspark.sql import functions as F

    base, targets = (
        _events(frame.withWatermark("max_time", f"{delay_us} microseconds"), "key", "max_time")
        for frame in (left, right)
    )
    reach = f"INTERVAL {condition.reach_us} MICROSECOND"
    near = f"r.max_time BETWEEN l.max_time - {reach} AND l.max_time + {reach}"
    on = F.expr(f"l.key = r.key AND {near} AND {_qualifies(condition)}")
    pairs = base.alias("l").join(targets.alias("r"), on)
    return pairs.selectExpr("l.id AS left_id", "r.id AS right_id")


def bucketed(
    left: DataFrame, right: DataFrame, condition: Condition = Condition()
) -> tuple[DataFrame, DataFrame]:
    """Both sides with the time buckets on which they are joined; right events in three each."""
    # Whatever else right has comes along; Spark reads what is used.
    bucket = f"latest div {condition.reach_us}"
    others = [name for name in right.columns if name not in ("id", "min_time", "max_time")]
    copies = f"explode(array({', '.join(f'{bucket} + {i}' for i in (-1, 0, 1))}))"
    return (
        _events(left).selectExpr("*", f"{bucket} AS bucket"),
        _events(right, *others).selectExpr("*", f"{copies} AS bucket"),
    )


def _joined(left: DataFrame, right: DataFrame, variant: str, condition: Condition) -> DataFrame:
    """Events ``l`` and ``r`` of each pair."""
    from pyspark.sql import functions as F

    base, targets = bucketed(left, right, condition)
    hint = _HINTS[variant]
    if hint:
        targets = targets.hint(hint)
    on = F.expr(f"l.bucket = r.bucket AND {_qualifies(condition)}")
    return base.alias("l").join(targets.alias("r"), on)


def _events(frame: DataFrame, *more: str) -> DataFrame:
    latest = "unix_micros(max_time)"
    length = f"CAST({latest} - unix_micros(min_time) AS DOUBLE) AS length"
    return frame.selectExpr("id", f"{latest} AS latest", length, *more)
