"""Dates are midnights and durations are numbers with a unit, in every operator; what comes in goes out."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import coincide
from coincide import CorrelateOptions, SchemaError, TimingCondition, correlate_tables, within
from coincide.engine.borders.arguments import BorderArguments
from spark_plugin.ways.files.borders import plan_file_crossings
from tests.helpers.rows import in_order, tuples
from tests.helpers.spark_cases import frame

DAYS = [19675, 19676, 19678, 19690, None]
KINDS = {
    "date32": (pa.array(DAYS, pa.int32()).cast(pa.date32()), "1d"),
    "date64": (pa.array(DAYS, pa.int32()).cast(pa.date32()).cast(pa.date64()), "1d"),
    "duration[s]": (pa.array(DAYS, pa.duration("s")), "1s"),
    "duration[us]": (pa.array(DAYS, pa.duration("us")), "1us"),
    "duration[ns]": (pa.array(DAYS, pa.duration("ns")), "1ns"),
}
ON_SPARK = ("date32", "duration[us]")


def events(kind: str, **more: Any) -> pa.Table:
    return pa.table({"t": KINDS[kind][0], "id": range(len(DAYS)), **more})


def moving(time: pa.Array) -> tuple[pa.Table, pa.Table]:
    """Readings that go in and out of a range."""
    readings = {"stream_id": ["a"] * 4, "time": time[:4], "value": [0.0, 5.0, 0.0, 5.0]}
    return pa.table(readings), pa.table({"query_id": ["q"], "lower": [1.0], "upper": [9.0]})


def condition(kind: str) -> TimingCondition:
    step = KINDS[kind][1]
    return TimingCondition(within(step, "3" + step[1:]), 1.0)


NEAR = [(0, 1), (0, 2), (1, 2)]
ASKED = {"left_time": "t", "right_time": "t", "left_columns": ["id"], "right_columns": ["id", "t"]}


@pytest.mark.parametrize("kind", KINDS)
def test_a_join_of_dates_or_durations(kind: str) -> None:
    table = events(kind)
    found = correlate_tables(table, table, condition(kind), **ASKED)
    assert sorted(tuples(found.select([0, 1]))) == NEAR
    assert found.schema.field("right_t").type == table.schema.field("t").type


def test_a_duration_goes_with_numbers_that_have_a_unit() -> None:
    """And a date with wall-clock times: both sides may be of other types."""
    seconds = pa.table({"t": [19676.0005, 5.0], "id": [0, 1]})
    options = CorrelateOptions(unit="s")
    near = TimingCondition(within("1s", "1500ms"), 1.0)
    found = correlate_tables(events("duration[s]"), seconds, near, **ASKED, options=options)
    assert found["left_id"].to_pylist() == [0]
    whole = seconds.set_column(0, "t", pa.array([1, 2]))
    with pytest.raises(SchemaError, match="only one side has a unit"):
        correlate_tables(events("duration[s]"), whole, near, **ASKED)
    clock = pa.table({"t": [dt.datetime(2023, 11, 14, 6)], "id": [7]})
    near = TimingCondition(within("6h", "6h"), 1.0)
    assert correlate_tables(events("date32"), clock, near, **ASKED)["left_id"].to_pylist() == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_crossings_and_transitions_of_dates_or_durations(kind: str) -> None:
    time, step = KINDS[kind]
    readings, queries = moving(time)
    crossed = coincide.border_crossing_tables(readings, queries)
    assert crossed.schema.field("min_time").type == time.type
    assert crossed["min_time"].to_pylist() == time[:3].to_pylist()
    assert crossed["max_time"].to_pylist() == time[1:4].to_pylist()
    exact = crossed.set_column(
        crossed.schema.get_field_index("min_time"), "min_time", crossed["max_time"]
    )
    moved = coincide.transition_tables(exact, within="3" + step[1:])
    assert moved.schema.field("first_min_time").type == time.type
    assert moved["transition"].to_pylist() == ["I>O", "O>!I"]
    assert moved["max_time"].cast(time.type)[0] == time[2]


NOON = dt.datetime(2024, 1, 1, 12)
DATES = pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)])
EVENTS = pa.table({"query_id": [1, 1], "stream_id": [1, 1], "event": ["I", "O"], "t": DATES})
READINGS = pa.table({"time": DATES, "value": [1.0, 5.0], "stream_id": [1, 1]})
RANGE = pa.table({"query_id": [1], "lower": [3.0], "upper": [8.0]})
BETWEEN = coincide.BorderOptions(interpolate=True)


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_times_computed_between_dates_are_timestamps(kind: pa.DataType) -> None:
    """And the times of rows stay dates."""
    events = EVENTS.set_column(3, "t", DATES.cast(kind))
    moved = coincide.transition_tables(events, time="t", within="12h")
    assert moved["min_time"][0].as_py() == moved["max_time"][0].as_py() == NOON
    assert moved["first_min_time"].type == moved["first_max_time"].type == kind
    monitor = coincide.TransitionMonitor(time="t", within="12h")
    assert moved["next_max_time"].type == kind
    assert moved["min_duration_us"].to_pylist() == [86_400 * 10**6]
    columns = moved.column_names[:-4]
    assert monitor.push(events).select(columns).equals(moved.select(columns))

    readings = READINGS.set_column(0, "time", DATES.cast(kind))
    found = coincide.border_crossing_tables(readings, RANGE, options=BETWEEN)
    assert found["crossing_time"].to_pylist() == [NOON]
    assert found["min_time"].type == found["max_time"].type == kind
    assert coincide.BorderMonitor(RANGE, options=BETWEEN).push(readings).equals(found)


@pytest.mark.spark
def test_times_computed_between_dates_are_timestamps_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    events, readings = frame(spark, EVENTS), frame(spark, READINGS)
    moved = coincide.transitions(events, time="t", within="12h")
    expected = coincide.transition_tables(EVENTS, time="t", within="12h")
    assert in_order(moved.toArrow()) == in_order(expected)
    kinds = [*2 * ["date"], *2 * ["timestamp_ntz"], *2 * ["date"], *2 * ["bigint"]]
    assert [kind for _, kind in moved.dtypes[-8:]] == kinds

    path = str(tmp_path / "readings.parquet")
    pq.write_table(READINGS, path)
    of_files = plan_file_crossings(spark, path, RANGE, BorderArguments(options=BETWEEN))
    crossed = coincide.border_crossings(readings, RANGE, options=BETWEEN)
    expected = coincide.border_crossing_tables(READINGS, RANGE, options=BETWEEN)
    for found in (crossed, of_files.dataframe):
        assert in_order(found.toArrow()) == in_order(expected)
        assert [kind for _, kind in found.dtypes[-3:]] == ["date", "date", "timestamp_ntz"]


@pytest.mark.parametrize("kind", KINDS)
def test_causality_of_dates_or_durations(kind: str) -> None:
    step = KINDS[kind][1]
    table = events(kind, x=[0.0] * 5, y=[0.0] * 5)
    cause = coincide.CausalityCondition(coincide.Temporal(0, "3" + step[1:]))
    found = coincide.causality_tables(table, table, cause, cause_time="t", effect_time="t")
    assert set(NEAR) <= set(tuples(found.select([0, 1])))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ON_SPARK)
@pytest.mark.parametrize("way", ["exchange", "broadcast"])
def test_dates_and_intervals_on_spark(kind: str, way: str, spark: SparkSession) -> None:
    table = events(kind)
    given = frame(spark, table)
    found = coincide.correlate(
        given, given, condition(kind), **ASKED, options=CorrelateOptions(way=way)
    )
    assert in_order(found.toArrow()) == in_order(
        correlate_tables(table, table, condition(kind), **ASKED)
    )
    assert found.schema["right_t"].dataType == given.schema["t"].dataType


@pytest.mark.spark
@pytest.mark.parametrize("kind", ON_SPARK)
def test_crossings_of_dates_and_intervals_on_spark(kind: str, spark: SparkSession) -> None:
    time, step = KINDS[kind]
    readings, queries = moving(time)
    crossed = coincide.border_crossings(frame(spark, readings), queries)
    expected = coincide.border_crossing_tables(readings, queries)
    assert in_order(crossed.toArrow()) == in_order(expected)
    long = "30" + step[1:]
    moved = coincide.transitions(crossed, within=long, confidence=0.6)
    expected = coincide.transition_tables(expected, within=long, confidence=0.6)
    assert in_order(moved.toArrow()) == in_order(expected)


@pytest.mark.spark
@pytest.mark.parametrize("kind", [*ON_SPARK, "duration[ns]"])
def test_files_of_dates_or_durations_are_read_by_their_statistics(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    table, path = events(kind), str(tmp_path / "a.parquet")
    pq.write_table(table, path, row_group_size=2)
    options = CorrelateOptions(slices=3)
    asked = {**ASKED, "right_columns": ["id"]}
    found = coincide.correlate_files(spark, path, path, condition(kind), **asked, options=options)
    assert sorted(tuples(found.toArrow())) == NEAR
