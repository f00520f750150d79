"""Sequences and coincidences where all streams but one go to every worker."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    NoPairsWarning,
    SequenceReport,
    coincidence_tables,
    coincidences,
    sequence_tables,
    sequences,
    spark_errors_as_ours,
)
from spark_plugin.ways import sequences as ways
from spark_plugin.ways.limits import PlannerLimits
from tests.helpers.sequence_spark import (
    asked_of_coincidences,
    asked_of_sequences,
    can_stay,
    certain_rows,
    frames_of,
    on_a_way,
    rows_of,
)
from tests.helpers.spark_cases import jobs
from tests.helpers.tuple_conditions import drawn_condition, with_values

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]

BROADCAST = CorrelateOptions(way="broadcast")
_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture(params=[1, 3, 10_000])
def batch(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[int]:
    """Rows that a task gets at once."""
    before = spark.conf.get(_BATCH)
    spark.conf.set(_BATCH, str(request.param))
    yield request.param
    spark.conf.set(_BATCH, str(before))


def cut(frames: list[DataFrame], rng: random.Random) -> list[DataFrame]:
    """The same DataFrames in some partitions, one at several places once."""
    made = {id(frame): frame.repartition(rng.randint(1, 4)) for frame in frames}
    return [made[id(frame)] for frame in frames]


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_same_wherever_rows_are_cut(spark: SparkSession, seed: int, batch: int) -> None:
    rng = random.Random(1000 * batch + seed)
    is_sequence = seed % 3 > 0
    while True:
        case, asked = (asked_of_sequences if is_sequence else asked_of_coincidences)(rng)
        asked = on_a_way(rng, case, asked)
        if can_stay(case, asked.words):
            break
    if rng.random() < 0.3:
        case = with_values(case, rng)
        asked.words["where"] = drawn_condition(rng, case.names).sql
    of_tables = sequence_tables if is_sequence else coincidence_tables
    of_frames: Any = sequences if is_sequence else coincidences
    expected = of_tables(case.tables, **asked.words)
    asked = replace(asked, options=replace(asked.options, way="broadcast"))
    report = SequenceReport()
    found = of_frames(cut(frames_of(spark, case), rng), **asked.on_spark, report=report).toArrow()
    assert report.summary().way == "broadcast"
    assert found.schema == expected.schema
    assert certain_rows(case, asked, found) == certain_rows(case, asked, expected)


@pytest.mark.parametrize("seed", range(8))
def test_a_stream_stays_just_where_it_can(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)
    while True:
        case, asked = (asked_of_sequences if seed % 2 else asked_of_coincidences)(rng)
        asked = on_a_way(rng, case, asked)
        if not can_stay(case, asked.words):
            break
    of_frames: Any = sequences if seed % 2 else coincidences
    words = {**asked.words, "options": BROADCAST}
    with pytest.raises(ConditionError, match=r"way='broadcast' .*found that .*Remove way"):
        of_frames(frames_of(spark, case), **words)


SIZE = 300_000
ONE = {"windows": [(0, 9), (0, 5)], "time": "t"}


def large(spark: SparkSession) -> DataFrame:
    """A stream that Spark knows to be large."""
    return spark.range(SIZE).selectExpr("id", "id * 10 AS t")


def small(spark: SparkSession, shift: int) -> DataFrame:
    """A stream of few events near those of `large`."""
    ids = list(range(40))
    return spark.createDataFrame(pa.table({"id": ids, "t": [70_000 * k + shift for k in ids]}))


@pytest.mark.parametrize(("most", "way"), [(1_599, "exchange"), (1_600, "broadcast")])
def test_small_streams_of_many_links_are_exchanged(
    spark: SparkSession, most: int, way: str
) -> None:
    ids = list(range(40))
    near = [spark.createDataFrame(pa.table({"id": ids, "t": [k] * 40})) for k in (10, 12)]
    report = SequenceReport()
    options = CorrelateOptions(slice_rows=most)
    found = sequences([large(spark), *near], **ONE, options=options, report=report)
    assert found.count() == 40 * 40
    assert report.summary().way == way
    assert ("1,600 links of small ones" in report.summary().why) == (way == "exchange")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_small_streams_are_broadcast_without_a_planning_job(
    spark: SparkSession, place: int
) -> None:
    frames = [small(spark, 10 + 3 * k) for k in (0, 1)]
    frames.insert(place, large(spark))
    windows: list[tuple[int, int]] = [(-9, 9), (-9, 9)]
    tables = [frame.toArrow() for frame in frames]
    expected = sequence_tables(tables, windows, time="t")
    reports = SequenceReport(), SequenceReport()
    found = sequences(frames, windows, time="t", report=reports[0]).toArrow()
    assert rows_of(found) == rows_of(expected)
    assert found.num_rows >= 40
    sequence_tables(tables, windows, time="t", report=reports[1])
    told, own = (report.summary() for report in reports)
    names = [name for k, name in enumerate("abc") if k != place]
    assert told.way == "broadcast"
    assert told.why == (
        f"{names[0]} and {names[1]} to every worker, 1,280 bytes, and {'abc'[place]} stays where it is,"
        " no planning job"
    )
    assert told.streams == own.streams
    assert told.found == own.found
    # Those of the large stream with the one by which its rows were chosen, and those of small ones.
    assert told.links == {name: own.links[name] for name in told.links}
    assert list(told.links) == [["a to b", "b to c"], ["a to b"], ["a to b", "b to c"]][place]


def test_small_streams_of_files_are_collected_without_a_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    near = []
    for k in (10, 13):
        path = tmp_path / f"{k}.parquet"
        pq.write_table(small(spark, k).toArrow(), path, row_group_size=7)
        near.append(spark.read.parquet(str(path)))
    frames, report = [large(spark), *near], SequenceReport()
    with jobs(spark, "spread") as ran:
        found = sequences(frames, **ONE, report=report)
    assert ran == []
    expected = sequence_tables([frame.toArrow() for frame in frames], **ONE)
    assert rows_of(found.toArrow()) == rows_of(expected)
    assert report.summary().way == "broadcast"


def test_first_events_that_are_few_take_an_exchange(spark: SparkSession) -> None:
    frames = [small(spark, 10), large(spark), small(spark, 12)]
    report = SequenceReport()
    found = sequences(frames, **ONE, emit="counts", report=report).toArrow()
    tables = [frame.toArrow() for frame in frames]
    assert rows_of(found) == rows_of(sequence_tables(tables, **ONE, emit="counts"))
    told = report.summary()
    assert told.way == "exchange"
    assert told.why.endswith(
        "; no broadcast, since emit='counts' looks at all events of b for each of a"
    )


def test_a_large_frame_at_two_places_takes_an_exchange(spark: SparkSession) -> None:
    own = large(spark)
    report = SequenceReport()
    found = sequences([small(spark, 10), own, own], [(0, 9), (0, 10)], time="t", report=report)
    assert found.count() == 40
    assert report.summary().why.endswith("one DataFrame is b, c, and two events of it make one row")


@pytest.mark.parametrize("options", [
    CorrelateOptions(slices=3), CorrelateOptions(way="exchange"), CorrelateOptions(broadcast_bytes=0),
])  # fmt: skip
def test_options_keep_small_streams_from_every_worker(
    spark: SparkSession, options: CorrelateOptions
) -> None:
    report = SequenceReport()
    frames = [large(spark), small(spark, 3), small(spark, 4)]
    sequences(frames, **ONE, options=options, report=report).collect()
    assert report.summary().way == "exchange"


def test_more_rows_than_estimated_take_an_exchange(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [large(spark), small(spark, 3), small(spark, 4)]
    monkeypatch.setattr(ways, "LIMITS", PlannerLimits(small_rows=39))
    report = SequenceReport()
    assert sequences(frames, **ONE, report=report).count() == 40
    assert report.summary().way == "exchange"


@pytest.mark.parametrize("how", ["inner", "anti"])
def test_what_a_planning_job_counts_decides(spark: SparkSession, how: Any) -> None:
    """Below a confidence of one half it looks for the longest event."""
    rng = random.Random(5)
    tables = [
        pa.table({
            "id": list(range(size)), "k": [rng.choice([1, 2, None]) for _ in range(size)],
            "min_time": (low := [rng.randint(0, 900) for _ in range(size)]),
            "max_time": [at + rng.randint(0, 6) for at in low],
        })
        for size in (400, 30, 30)
    ]  # fmt: skip
    asked: dict[str, Any] = {
        "windows": [(0, 5), (-3, 4)], "confidence": 0.3, "by": "k", "how": how,
    }  # fmt: skip
    report = SequenceReport()
    frames = [spark.createDataFrame(table).repartition(3) for table in tables]
    found = sequences(frames, **asked, report=report).toArrow()
    assert rows_of(found) == rows_of(sequence_tables(tables, **asked))
    told = report.summary()
    assert (told.way, told.why.endswith("rows were counted")) == ("broadcast", True)
    assert [counts.rows for counts in told.streams.values()] == [400, 30, 30]


def test_keys_of_other_widths_and_any_columns_come_back(spark: SparkSession) -> None:
    query = (
        "SELECT id, {key} AS k, concat('n', id) AS text, DATE '2026-01-01' AS day, array(id, 1) AS list,"
        " TIMESTAMP '2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id * {step}) AS at,"
        " named_struct('x', id) AS s, CAST(id AS decimal(9, 2)) AS price FROM range({size})"
    )
    frames = [
        spark.sql(query.format(key=key, step=step, size=size))
        for key, step, size in (
            ("CAST(id % 3 AS INT)", 4, 20), ("id % 3", 1, 90), ("CAST(id % 2 AS SMALLINT)", 2, 40),
        )
    ]  # fmt: skip
    asked: dict[str, Any] = {
        "windows": [("0s", "4s"), ("0s", "4s")], "time": "at", "by": "k",
        "columns": ["id", "at", "text", "day", "list", "s", "price"],
        "where": "b_price >= c_price AND a_text <> b_text",
    }  # fmt: skip
    found = sequences(frames, **asked, options=BROADCAST).toArrow()
    expected = sequence_tables([frame.toArrow() for frame in frames], **asked)
    assert found.column_names == expected.column_names
    ids = ["a_id", "b_id", "c_id"]
    assert rows_of(found.select([*ids, "k"])) == rows_of(expected.select([*ids, "k"]))
    others = [name for name in expected.column_names if name not in ("a_s", "b_s", "c_s", "k")]
    order = [(name, "ascending") for name in ids]
    one, two = (table.sort_by(order).select(others).to_pylist() for table in (found, expected))
    assert one == two
    assert len(one) > 5


def test_without_small_events_all_first_ones_are_without_a_sequence(spark: SparkSession) -> None:
    schema = "id long, t long"
    first = spark.createDataFrame([(1, 5), (2, None)], schema)
    none = spark.createDataFrame([], schema)
    asked: dict[str, Any] = {"windows": [(0, 5)], "time": "t", "options": BROADCAST}
    assert {row[0] for row in sequences([first, none], how="anti", **asked).collect()} == {1, 2}
    assert sequences([first, none], **asked).collect() == []
    assert sequences([none, first], **asked).collect() == []


def test_a_report_says_why_nothing_is_found(spark: SparkSession) -> None:
    schema = "id long, t long"
    frames = [spark.createDataFrame([(1, t)], schema) for t in (5, 900, 901)]
    report = SequenceReport()
    found = sequences(frames, [(0, 5), (0, 5)], time="t", options=BROADCAST, report=report)
    assert found.collect() == []
    with pytest.warns(NoPairsWarning, match="no two events from a to b"):
        told = report.summary()
    assert told.links == {"a to b": 0, "b to c": 1}
    assert "way" in str(report)


def test_invalid_rows_are_refused_or_dropped(spark: SparkSession) -> None:
    wrong = spark.createDataFrame(pa.table({"id": [1, 2], "min_time": [5, 0], "max_time": [3, 1]}))
    right = spark.createDataFrame(
        pa.table({"id": [3, 4, 5, 6], "min_time": [1, 2, 9, 9], "max_time": [2, 2, 9, 9]})
    )
    # Streams that are collected are looked at when it is planned, the one that stays when it is read.
    with pytest.raises(DataError, match="min_time"):
        sequences([wrong, right], [(0, 5)], 0.5, options=BROADCAST)
    many = wrong.unionAll(wrong).unionAll(wrong)
    found = sequences([right, many], [(-5, 0)], 0.5, options=BROADCAST)
    with pytest.raises(Exception, match="min_time"), spark_errors_as_ours():
        found.collect()
    drop = replace(BROADCAST, invalid="drop")
    report = SequenceReport()
    with pytest.warns(DroppedRowsWarning):
        found = sequences([wrong, right], [(0, 5)], 0.5, options=drop, report=report)
    assert sorted(tuple(row) for row in found.collect()) == [(2, 3), (2, 4)]
    assert report.summary().streams["a"].dropped == 1


def test_small_events_at_several_places_are_near_by_each(spark: SparkSession, batch: int) -> None:
    few = pa.table({"id": list(range(20)), "t": [5 * k for k in range(20)]})
    many = pa.table({"id": list(range(60)), "t": [2 * k for k in range(60)]})
    frames = [spark.createDataFrame(table) for table in (few, many)]
    asked: dict[str, Any] = {"windows": [(0, 9), (0, 9), (-30, -20)], "time": "t"}
    options = replace(BROADCAST, slice_rows=1)
    places = [frames[0], frames[1], frames[0], frames[0]]
    found = sequences(places, **asked, options=options).toArrow()
    expected = sequence_tables([few, many, few, few], **asked)
    assert rows_of(found) == rows_of(expected)
    assert expected.num_rows > 100
