"""Clocks that are known to some width: the same as intervals of two columns, on every way."""

from __future__ import annotations

import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    DataError,
    JoinReport,
    SchemaError,
    Temporal,
    TimingCondition,
    around,
    causality,
    causality_tables,
    clusters,
    correlate,
    correlate_files,
    correlate_tables,
    instants,
    intervals,
    resolution,
    within,
)
from coincide.command_line import run
from coincide.model.units import TIME_LIMIT
from tests.helpers.rows import in_order

CONDITION = TimingCondition(within("-15ms", "25ms"), 0.4)
LEFT_TIME, RIGHT_TIME = around("t", before="20ms", after="-5ms"), resolution("t", "10ms")
OFFSETS = (-20, -5), (0, 10)


def events(seed: int, rows: int = 200) -> pa.Table:
    random = np.random.default_rng(seed)
    times = pa.array(1_700_000_000_000 + random.integers(0, 3000, rows), pa.int64())
    return pa.table(
        {"id": range(rows), "t": times.cast(pa.timestamp("ms")), "at": random.integers(0, 2, rows)}
    ).sort_by("t")


LEFT, RIGHT = events(1), events(2)


def with_ends(table: pa.Table, offsets: tuple[int, int]) -> pa.Table:
    """The same with the ends in columns of their own."""
    for name, offset in zip(("min_time", "max_time"), offsets, strict=True):
        ends = pc.add(table["t"], pa.scalar(timedelta(milliseconds=offset)))
        table = table.append_column(name, ends)
    return table


ENDS = with_ends(LEFT, OFFSETS[0]), with_ends(RIGHT, OFFSETS[1])
CLOCKS: dict[str, Any] = {"left_time": LEFT_TIME, "right_time": RIGHT_TIME, "by": "at"}


@pytest.mark.parametrize(("how", "emit"), [("inner", "pairs"), ("left", "best"), ("anti", "pairs")])
def test_the_same_as_two_columns(how: Any, emit: Any) -> None:
    asked: dict[str, Any] = {"how": how, "emit": emit, "probability": how != "anti"}
    want = correlate_tables(*ENDS, CONDITION, by="at", **asked)
    found = correlate_tables(LEFT, RIGHT, CONDITION, **CLOCKS, **asked)
    assert in_order(found) == in_order(want)
    assert want.num_rows > 0


def test_plus_minus_is_both_ways() -> None:
    both = {"left_time": around("t", timedelta(milliseconds=7)), "right_time": instants("t")}
    ends = with_ends(LEFT, (-7, 7)), RIGHT
    want = correlate_tables(
        *ends, CONDITION, left_time=intervals("min_time", "max_time"), right_time="t"
    )
    found = correlate_tables(LEFT, RIGHT, CONDITION, **both)
    assert in_order(found) == in_order(want)
    assert around("t", "7ms") == around("t", before="7ms", after="7ms")


@pytest.mark.spark
@pytest.mark.parametrize("way", ["exchange", "broadcast-left"])
def test_on_spark(spark: SparkSession, way: str) -> None:
    want = correlate_tables(LEFT, RIGHT, CONDITION, **CLOCKS)
    options: Any = {"way": way, "slices": 3} if way == "exchange" else {"way": way}
    left, right = map(spark.createDataFrame, (LEFT, RIGHT))
    found = correlate(left, right, CONDITION, **CLOCKS, options=CorrelateOptions(**options))
    assert in_order(found.toArrow()) == in_order(want)


@pytest.mark.spark
def test_files_go_directly(spark: SparkSession, tmp_path: Path) -> None:
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=16)
    files = str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet")
    options = CorrelateOptions(way="files", slices=4)
    found = correlate_files(spark, *files, CONDITION, **CLOCKS, options=options)
    assert in_order(found.toArrow()) == in_order(correlate_tables(LEFT, RIGHT, CONDITION, **CLOCKS))


UNFIT = pa.table(
    {
        "id": range(6),
        "t": pa.array([1.0, None, math.nan, 2.0**61 - 600, 600 - 2.0**61, 2.0], pa.float64()),
    }
)
"""An event 600 ticks from the limit is beyond it with a margin of more."""


@pytest.mark.spark
@pytest.mark.parametrize("engine", ["one process", "Spark"])
def test_bad_rows(spark: SparkSession, engine: str) -> None:
    condition, report = TimingCondition(within(-10, 10), 0.01), JoinReport()
    asked: Any = {
        "left_time": around("t", 1000), "report": report,
        "right_time": around("t", before=513, after=-513),
        "options": CorrelateOptions(unit="s", tick="s", invalid="drop"),
    }  # fmt: skip
    right = UNFIT.take([0, 4])  # the second one ends up where Spark marks NaN
    if engine == "Spark":
        tables = map(spark.createDataFrame, (UNFIT, right))
        rows = correlate(*tables, condition, **asked).toArrow()  # type: ignore[misc]
    else:
        rows = correlate_tables(UNFIT, right, condition, **asked)
    assert sorted(rows["left_id"].to_pylist()) == [0, 5]  # 20 of 2,000 ticks: just as probable
    left, far = report.summary().left, report.summary().right
    assert left is not None
    assert far is not None
    assert dict(far.invalid) == {"range": 1}
    assert (left.rows, left.unmatchable) == (6, 1)
    assert left.dropped == 3


def test_a_time_beyond_the_limit_is_told() -> None:
    far = pa.table({"id": [1], "t": [TIME_LIMIT - 5]})
    near = pa.table({"id": [1], "t": [0]})
    condition = TimingCondition(within(-10, 10), 0.5)
    assert not correlate_tables(near, far, condition, left_time="t", right_time=around("t", 4))
    with pytest.raises(DataError, match=r"right: times that reach 2\^61 ticks in t in 1 row"):
        correlate_tables(near, far, condition, left_time="t", right_time=around("t", 5))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: around("t"), "needs to know how far off"),
        (lambda: around("t", "1ms", after="2ms"), "a width, or before and after .found both"),
        (lambda: around("t", "-1ms"), "width must not be negative"),
        (
            lambda: around("t", before="1ms", after="-2ms"),
            "If one is negative, the other must be at least as long",
        ),
        (
            lambda: around("t", before="-2ms"),
            "If one is negative, the other must be at least as long",
        ),
        (lambda: around(("a", "b"), "1ms"), "must be the name of a column"),  # type: ignore[arg-type]
        (lambda: resolution("t", "-1s"), "step must not be negative"),
        (lambda: around("t", "1 fortnight"), "the unit 'fortnight' is unknown"),
    ],
)
def test_what_makes_no_sense(make: Any, words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        make()


def test_a_column_is_named_once() -> None:
    floats = pa.table({"id": [1], "t": [1.0]})
    with pytest.raises(SchemaError, match=r"need a unit .found none for left\.t, right\.t\). Give"):
        correlate_tables(floats, floats, CONDITION, left_time=around("t", 1), right_time="t")


def test_lengths_are_not_declared_twice() -> None:
    with pytest.raises(ConditionError, match="left_longest declares the longest interval, but"):
        correlate_tables(
            LEFT, RIGHT, CONDITION, **CLOCKS, options=CorrelateOptions(left_longest="1s")
        )


def command(place: Path, *words: str) -> int:
    files = [str(place / "left.csv"), str(place / "right.csv")]
    asked = ["--within=-15ms", "25ms", "--confidence", "0.4", "--by", "at", "--engine", "local"]
    times = ["--left-time", "t", "--right-time", "t", "--overwrite"]
    return run(["join", *files, "-o", str(place / "out.parquet"), *asked, *times, *words])


def test_the_command_line(tmp_path: Path, capsys: Any) -> None:
    for name, table in (("left", LEFT), ("right", RIGHT)):
        csv.write_csv(table, tmp_path / f"{name}.csv")
    assert command(tmp_path, "--left-around", "20ms,-5ms", "--right-resolution", "10ms") == 0
    found = pq.read_table(tmp_path / "out.parquet")
    assert in_order(found) == in_order(correlate_tables(LEFT, RIGHT, CONDITION, **CLOCKS))
    assert command(tmp_path, "--left-around", "1ms,2ms,3ms") == 2
    assert "--left-around takes a duration, or BEFORE,AFTER" in capsys.readouterr().err
    assert command(tmp_path, "--left-around", "1ms", "--left-resolution", "1ms") == 2
    assert "--left-around and --left-resolution describe the same" in capsys.readouterr().err
    assert command(tmp_path, "--left-around", "1ms", "--left-time", "t,u") == 2
    assert "with --left-around, --left-time takes the one column" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.parametrize("is_one_stream", [True, False])
def test_causes_and_effects_on_spark(spark: SparkSession, is_one_stream: bool) -> None:
    condition = CausalityCondition([Temporal("-15ms", "25ms")], confidence=0.4)
    effects = None if is_one_stream else RIGHT
    clocks: Any = {"cause_time": LEFT_TIME, "by": "at"}
    clocks |= {} if is_one_stream else {"effect_time": RIGHT_TIME}
    want = causality_tables(LEFT, effects, condition, **clocks)
    frames = [None if table is None else spark.createDataFrame(table) for table in (LEFT, effects)]
    assert frames[0] is not None
    options = CorrelateOptions(way="exchange", slices=3)
    found = causality(frames[0], frames[1], condition, **clocks, options=options).toArrow()
    assert in_order(found) == in_order(want)
    if not is_one_stream:
        pairs = correlate_tables(LEFT, RIGHT, CONDITION, **CLOCKS)
        assert want.num_rows == pairs.num_rows


def test_clusters() -> None:
    condition = CausalityCondition([Temporal("0ms", "30ms")], confidence=0.9)
    found = clusters(LEFT, condition, time=LEFT_TIME)
    assert found.equals(clusters(ENDS[0], condition, time=("min_time", "max_time")))
    with pytest.raises(ConditionError, match="left_longest declares"):
        clusters(LEFT, condition, time=LEFT_TIME, options=CorrelateOptions(left_longest="1s"))


def test_row_groups_reach_as_far_as_their_clock(tmp_path: Path, capsys: Any) -> None:
    """By its stamps alone no row group of the right side is near any left event."""
    for name, times in (("left", [0, 5000]), ("right", [1000, 6000])):
        table = pa.table({"id": range(2), "t": times})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=1)
    files = [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    words = ["--within=0", "10", "--confidence", "0.005", "--engine", "local", "--way", "files"]
    clocks = ["--left-time", "t", "--right-time", "t", "--right-around", "1000,0"]
    assert run(["join", *files, "-o", str(tmp_path / "out.parquet"), *words, *clocks]) == 0
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.to_pylist() == [{"left_id": 0, "right_id": 0}, {"left_id": 1, "right_id": 1}]
