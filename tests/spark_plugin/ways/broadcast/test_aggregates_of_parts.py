"""Aggregates of left events that go to every worker: tasks see some matches each, and answers are whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions, JoinReport, correlate, correlate_tables
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

LABELS = pa.table(
    {"id": range(7), "t": [0, 1000, 2000, 2500, 2500, 9000, None], "kind": [*"aababa", "b"]}
)
ASKED: dict[str, Any] = {
    "left_time": "t", "right_time": "t", "within": (-900, 600), "emit": "aggregates",
    "left_columns": ["id", "kind"],
}  # fmt: skip
SMALL: dict[str, Any] = {"way": "broadcast-left", "slice_rows": 40}


def readings(seed: int, count: int = 400) -> pa.Table:
    """Values of all types in which columns cross, with nulls, and many at equal times."""
    rng = np.random.default_rng(seed)

    def drawn(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([values[i] for i in rng.integers(0, len(values), count)], kind)

    return pa.table({
        "t": rng.integers(0, 33, count) * 100,
        "float": drawn([1e300, -1e300, 1e-300, 5e-324, 0.1, None], pa.float64()),
        "odd": drawn([float("nan"), float("inf"), -0.0, 2.5, *[1.0] * 60], pa.float64()),
        "single": drawn([0.1, -3.4e38, 1e-45, None], pa.float32()),
        "whole": drawn([2**61, -(2**61), 7, None], pa.int64()),
        "small": drawn([-128, 127, 3], pa.int8()),
        "cost": drawn(["9" * 20 + ".99", "-0.01", None], pa.string()).cast(pa.decimal128(30, 2)),
        "flag": drawn([True, False, None], pa.bool_()), "none": pa.nulls(count, pa.float64()),
        "text": drawn(["b", "ab", "", "é", "\N{GRINNING FACE}", None], pa.string()),
        "raw": drawn([b"b", b"\xff", b"", None], pa.binary()),
        "at": drawn([-5, 1_700_000_000_000_000, None], pa.int64()).cast(pa.timestamp("us", "UTC")),
        "day": drawn([19_000, -400, None], pa.int32()).cast(pa.date32()),
        "lasted": drawn([5, -5, 10**12, None], pa.int64()).cast(pa.duration("us")),
        "many": drawn([[1, 2], [], None], pa.list_(pa.int64())),
    })  # fmt: skip


NUMBERS = ("count", "min", "max", "first", "last", "sum", "mean", "std")
OF_TYPES = {
    **dict.fromkeys(("float", "odd", "single", "small", "cost", "none"), NUMBERS),
    "whole": (*NUMBERS[:5], "mean", "std"), "flag": (*NUMBERS, "any"), "many": ("count",),
    **dict.fromkeys(("text", "raw", "at", "day"), NUMBERS[:5]), "lasted": NUMBERS[:6],
    "delta": ("sum", "std", "min", "max"), "probability": ("mean",),
}  # fmt: skip


@pytest.mark.parametrize("how", ["inner", "left"])
def test_all_types(spark: SparkSession, how: str) -> None:
    """Bit by bit, and of the type that one process gives."""
    named = {f"{f} {name}": (name, f) for name, functions in OF_TYPES.items() for f in functions}
    aggregates = {"n": "count", **named, "again": "count"}
    right, report = readings(1), JoinReport()
    wanted = correlate_tables(LABELS, right, how=how, aggregates=aggregates, **ASKED, report=report)
    frames = frame(spark, LABELS), frame(spark, right).repartition(5)
    told = JoinReport()
    found = correlate(
        *frames,
        how=how,
        aggregates=aggregates,
        **ASKED,
        options=CorrelateOptions(**SMALL),
        report=told,
    )
    table = found.toArrow()
    assert table.column_names == wanted.column_names
    assert len(table) == {"inner": 5, "left": 7}[how]
    # Rows decide among equal times in one process, their values on Spark.
    ends = [name for name in table.column_names if name.startswith(("first", "last"))]
    assert in_order(table.drop_columns(ends)) == in_order(wanted.drop_columns(ends))
    exchange = correlate(
        *frames, how=how, aggregates=aggregates, **ASKED, options=CorrelateOptions(way="exchange")
    )
    assert in_order(table) == in_order(exchange.toArrow())
    kinds = [[each.dataType for each in df.schema] for df in (found, exchange)]
    assert kinds[0] == kinds[1]
    pairs = sum(wanted["n"].to_pylist())
    assert told.summary().counters.pairs == report.summary().counters.pairs == pairs > 500


@pytest.mark.parametrize("of_right", [False, True])
def test_sums_that_only_parts_or_only_the_whole_cannot_hold(
    spark: SparkSession, of_right: bool
) -> None:
    most, half = 2**63 - 1, 2**62
    aggregates = {"sum": ("x", "sum"), "mean": ("x", "mean")}
    asked = ASKED | {"how": "inner", "left_columns": "id", "aggregates": aggregates}
    options = CorrelateOptions(**SMALL)
    if of_right:
        asked |= {"how": "right", "within": (-600, 900), "right_columns": "id"}
        options = CorrelateOptions(way="broadcast-right", slice_rows=40)

    def summed(values: list[int]) -> list[dict[str, Any]]:
        # Each value is a partition, and the values of one are too great together.
        rows = spark.createDataFrame([(5, x) for x in values], "t bigint, x bigint").repartition(
            4, F.col("x")
        )
        sides = frame(spark, LABELS.slice(0, 1)), rows
        found = correlate(*(sides[::-1] if of_right else sides), options=options, **asked)
        return [row.asDict() for row in found.select("sum", "mean").collect()]

    assert summed([most, most, most, -most, -most, -7]) == [
        {"sum": most - 7, "mean": (most - 7) / 6}
    ]
    assert summed([half, half, -half, -half, -half]) == [{"sum": -half, "mean": -half / 5}]
    with pytest.raises(Exception, match="a sum is beyond int64"):
        summed([half, half - 1, 1])


def test_no_left_event_and_no_match(spark: SparkSession) -> None:
    asked = ASKED | {"how": "left", "aggregates": {"n": "count", "x": ("float", "sum")}}
    options, right = CorrelateOptions(**SMALL), frame(spark, readings(2, 20))
    nothing = correlate(frame(spark, LABELS.slice(0, 0)), right, options=options, **asked)
    assert nothing.collect() == []
    report = JoinReport()
    alone = correlate(frame(spark, LABELS.slice(5)), right, options=options, report=report, **asked)
    rows = [(row["left_id"], row["n"], row["x"]) for row in alone.collect()]
    assert sorted(rows) == [(5, 0, None), (6, 0, None)]
    assert report.summary().counters.pairs == 0


def test_few_labels_are_sent_where_their_events_are(spark: SparkSession) -> None:
    """Planning chooses that, as for counts."""
    right = spark.range(0, 200_000, 1, 4).select(
        F.col("id").alias("t"), (F.col("id") % 7).alias("x")
    )
    report = JoinReport()
    asked = ASKED | {
        "how": "left",
        "aggregates": {"n": "count", "sum": ("x", "sum")},
        "report": report,
    }
    options = CorrelateOptions(broadcast_bytes=1 << 20)
    found = correlate(frame(spark, LABELS), right, options=options, **asked).collect()
    assert "left to every worker" in report.summary().why
    sums = {row["left_id"]: (row["n"], row["sum"]) for row in found}
    for label, t in zip(range(6), LABELS["t"].to_pylist(), strict=False):
        times = range(max(0, t - 900), t + 601)
        assert sums[label] == (len(times), sum(each % 7 for each in times))
    assert sums[6] == (0, None)
