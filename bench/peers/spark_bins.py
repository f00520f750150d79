"""Overlaps, causes and effects in Spark SQL: an equi-join on bins of time, then the condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.model.options import Emit


def overlaps(left: DataFrame, right: DataFrame, emit: Emit, width: int) -> DataFrame:
    """Spans that overlap, each in all bins that it touches; a pair is found in the first common bin."""
    binned = (
        f.selectExpr("id", "unix_seconds(start) AS s", "unix_seconds(end) AS e").selectExpr(
            "*", f"explode(sequence(s div {width}, e div {width})) AS bin"
        )
        for f in (left, right)
    )
    meets = "l.s <= r.e AND r.s <= l.e"
    first = f"greatest(l.s, r.s) div {width} = l.bin"
    return _joined(*binned, f"{meets} AND {first}", emit)


def causes_and_effects(
    causes: DataFrame, effects: DataFrame, emit: Emit, window: int, radius: float, reach: int
) -> DataFrame:
    """Effects within a window of time and a radius, each in the bins of all causes that can reach it."""
    width = max(1, window // reach)
    copies = ", ".join(f"time div {width} - {i}" for i in range(reach + 2))
    near = f"(r.x - l.x) * (r.x - l.x) + (r.y - l.y) * (r.y - l.y) <= {radius * radius!r}D"
    return _joined(
        causes.selectExpr("*", f"time div {width} AS bin"),
        effects.selectExpr("*", f"explode(array({copies})) AS bin"),
        f"r.time BETWEEN l.time AND l.time + {window} AND {near}", emit,
    )  # fmt: skip


def _joined(left: DataFrame, right: DataFrame, test: str, emit: Emit) -> DataFrame:
    from pyspark.sql import functions as F

    pairs = left.alias("l").join(right.alias("r"), F.expr(f"l.bin = r.bin AND {test}"))
    pairs = pairs.selectExpr("l.id AS left_id", "r.id AS right_id")
    if emit == "counts":
        return pairs.groupBy("left_id").agg(F.count("*").alias("matches"))
    return pairs
