"""Sequences of streams: what comes out is what tables give of all rows that are not late."""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    coincidence_streams,
    coincidence_tables,
    sequence_streams,
    sequence_tables,
    spark_errors_as_ours,
)
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.sequence_cases import Case
from tests.helpers.sequence_spark import (
    Asked,
    asked_of_coincidences,
    asked_of_sequences,
    certain_rows,
    rows_of,
)
from tests.helpers.spark_streams import (
    BEGIN,
    MANY,
    appended,
    arriving,
    stream_of,
    streamed,
    write_files,
)
from tests.helpers.tuple_conditions import drawn_condition, with_values
from tests.helpers.tuple_streams import drawn_arrivals, later, simulated, timely

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")]


def with_condition(rng: random.Random, case: Case, asked: Asked) -> tuple[Case, Asked]:
    """Half of the questions have a condition on the columns of all events."""
    if rng.random() < 0.5:
        return case, asked
    condition = drawn_condition(rng, case.names).sql
    return with_values(case, rng), replace(asked, words={**asked.words, "where": condition})


def check_sequences(spark: SparkSession, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    case, asked = asked_of_sequences(rng)
    case, asked = with_condition(rng, later(case), asked)
    arrivals = drawn_arrivals(rng, case, asked.words["confidence"])
    found, late = simulated(spark, case, asked, arrivals, rng.choice([1, 3, 32]))
    expected = sequence_tables(timely(case, late), **asked.words)
    assert found.schema == expected.schema
    rows = found.num_rows
    assert certain_rows(case, asked, found) == certain_rows(case, asked, expected)
    return rows, sum(map(len, late.values()))


def check_coincidences(spark: SparkSession, seed: int) -> tuple[int, int]:
    rng = random.Random(seed)
    case, asked = asked_of_coincidences(rng)
    case, asked = with_condition(rng, later(case), asked)
    arrivals = drawn_arrivals(rng, case, asked.words["confidence"])
    found, late = simulated(spark, case, asked, arrivals)
    expected = coincidence_tables(timely(case, late), **asked.words)
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)
    return found.num_rows, sum(map(len, late.values()))


def test_sequences_are_those_of_rows_that_are_not_late(spark: SparkSession) -> None:
    rows, late = map(sum, zip(*(check_sequences(spark, seed) for seed in range(14)), strict=True))
    assert rows > 50
    assert late > 20


def test_coincidences_are_those_of_rows_that_are_not_late(spark: SparkSession) -> None:
    rows, late = map(
        sum, zip(*(check_coincidences(spark, seed) for seed in range(10)), strict=True)
    )
    assert rows > 50
    assert late > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + 20 * MANY))
def test_many(spark: SparkSession, seed: int) -> None:
    check_sequences(spark, seed)
    check_coincidences(spark, seed)


TIMES = ("min_time", "seen_at")
ASKED: dict[str, Any] = {
    "windows": [(0, 300), (-100, 400), (0, 300)], "confidence": 0.6, "names": ("a", "b", "c", "d"),
    "time": {"a": TIMES, "b": "seen_at", "c": TIMES, "d": TIMES}, "by": "key",
    "options": CorrelateOptions(unit="ms"),
}  # fmt: skip
"""Four steps in three streams: the first one is the last one, too."""
ON_STREAMS: dict[str, Any] = {"delay": {"a": 500, "b": 0, "c": 50, "d": 500}, "longest": 100}


def arrived(folder: Path, seed: int, late: float = 0.0) -> list[list[pa.Table]]:
    """The files of three streams, written in the order in which they come; the last row of all is apart."""
    random = np.random.default_rng(seed)
    files = [arriving(random, 300, delay, 4, late=late) for delay in (500, 0, 50)]
    for number, tables in enumerate(files):
        write_files(folder / str(number), tables)
    return files


def streams_in(spark: SparkSession, folder: Path) -> list[DataFrame]:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    a, b, c = (stream_of(spark, folder / str(number)) for number in range(3))
    return [a, b, c, a]


def write_more(folder: Path, table: pa.Table) -> None:
    pq.write_table(table, folder / "005.parquet")


def expected_of(files: list[list[pa.Table]], **more: Any) -> pa.Table:
    a, b, c = (pa.concat_tables(tables[:-1]) for tables in files)
    return sequence_tables([a, b, c, a], **{**ASKED, **more})


def without_last(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows but those of the last row of all, whose slice may be closed by the clock of no one."""
    return [row for row in rows if row["a_id"] != -1]


@pytest.mark.parametrize("how", ["inner", "anti"])
def test_a_query_finds_them(spark: SparkSession, tmp_path: Path, how: str) -> None:
    files = arrived(tmp_path, 5)
    more = {"how": "anti"} if how == "anti" else {"probability": True}
    found = sequence_streams(streams_in(spark, tmp_path), **ASKED, **ON_STREAMS, **more)
    rows, progress = streamed(found, f"sequences_{how}")
    found_rows = without_last([dict(zip(found.columns, row, strict=True)) for row in rows])
    expected = expected_of(files, **more)
    assert found.schema == spark.createDataFrame(expected.slice(0, 1)).schema
    assert expected.num_rows > 20
    assert rows_of(pa.Table.from_pylist(found_rows, expected.schema)) == rows_of(expected)
    told = [each["observedMetrics"] for each in progress]
    for name, tables in zip("abc", files, strict=True):
        given = sum(map(len, tables))
        assert sum(each[f"sequences_{name}"]["rows"] for each in told) == given
        assert not any(each["sequences_late"][name] for each in told)
    assert sum(each["sequences_output"]["rows"] for each in told) == len(rows)


def test_late_rows_are_counted_and_take_no_part(spark: SparkSession, tmp_path: Path) -> None:
    def events(*rows: tuple[int, int]) -> pa.Table:
        columns = {"id": [i for i, _ in rows], "t": [BEGIN + t for _, t in rows]}
        return pa.table({name: pa.array(of, pa.int64()) for name, of in columns.items()})

    files = [
        [events((1, 100)), events((2, 9_000)), events((3, 120), (4, 9_100)), events((9, 10**6))],
        [events((11, 150)), events((12, 9_050)), events((13, 160)), events((19, 10**6))],
    ]
    for number, tables in enumerate(files):
        write_files(tmp_path / str(number), tables)
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    frames = [stream_of(spark, tmp_path / str(k), "id bigint, t bigint") for k in range(2)]
    found = sequence_streams(
        {"first": frames[0], "then": frames[1]}, [(0, 100)], time="t", delay=50,
        slice_length=500, options=CorrelateOptions(unit="ms"), name="late_ones",
    )  # fmt: skip
    rows, progress = streamed(found, "late_ones")
    assert sorted(rows) == [(1, 11), (2, 12)]
    late = [each["observedMetrics"]["late_ones_late"] for each in progress]
    assert [sum(each[name] for each in late) for name in ("first", "then")] == [1, 1]


def test_rows_far_ahead_are_set_aside_and_keys_may_differ_in_width(
    spark: SparkSession, tmp_path: Path
) -> None:
    def events(key: pa.DataType, *rows: tuple[int, int]) -> pa.Table:
        columns = {"id": [i for i, _ in rows], "t": [BEGIN + t for _, t in rows]}
        keys = pa.array([i % 10 for i, _ in rows], key)
        return pa.table({**columns, "k": keys})

    ahead = 10**8
    files = [
        [
            events(pa.int64(), (1, 0), (2, 5), (3, ahead)),
            events(pa.int64(), (4, 90), (5, 80), (6, 70)),
        ],
        [events(pa.int32(), (11, 20), (12, 30)), events(pa.int32(), (14, 99), (15, 10**6))],
        [events(pa.int16(), (21, 40), (22, 31)), events(pa.int16(), (24, 99), (25, 10**6))],
    ]
    kinds, frames = ("bigint", "int", "smallint"), {}
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    for name, kind, tables in zip("xyz", kinds, files, strict=True):
        folder = write_files(tmp_path / name, tables)
        frames[name] = stream_of(spark, folder, f"id bigint, t bigint, k {kind}")
    clock = frames["y"].selectExpr("timestamp_millis(t) AS at")
    found = sequence_streams(
        frames, [(0, 50), (0, 50)], time="t", by="k", delay=50, ahead={"x": "1h"},
        clock={"x": clock}, key_buckets=3, options=CorrelateOptions(unit="ms"), name="aside",
    )  # fmt: skip
    rows, progress = streamed(found, "aside")
    assert sorted(rows) == [(1, 1, 11, 21), (2, 2, 12, 22), (4, 4, 14, 24)]
    late = [each["observedMetrics"]["aside_late"] for each in progress]
    assert sum(each["x_ahead"] for each in late) == 1
    assert not any(each[name] for each in late for name in "xyz")


def test_a_query_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    files = arrived(tmp_path, 6)
    kept = tmp_path / "kept"
    for number in range(3):  # half of the files come later
        for name in ("002", "003", "004"):
            (kept / str(number)).mkdir(parents=True, exist_ok=True)
            (tmp_path / str(number) / f"{name}.parquet").rename(
                kept / str(number) / f"{name}.parquet"
            )

    def asked(**more: Any) -> DataFrame:
        return sequence_streams(streams_in(spark, tmp_path), **{**ASKED, **ON_STREAMS, **more})

    appended(asked(), tmp_path)
    before = spark.read.parquet(str(tmp_path / "found")).count()
    for path in kept.glob("*/*.parquet"):
        path.rename(tmp_path / path.relative_to(kept))
    appended(asked(), tmp_path)
    found = spark.read.parquet(str(tmp_path / "found")).toArrow()
    expected = expected_of(files)
    assert 0 < before < expected.num_rows
    found_rows = without_last(found.to_pylist())
    assert rows_of(pa.Table.from_pylist(found_rows, expected.schema)) == rows_of(expected)
    for number in range(3):
        write_more(tmp_path / str(number), files[number][0])
    changes = {"windows": [(0, 300), (-100, 401), (0, 300)]}, {"where": "a_id <> b_id"}
    for change in changes:
        words = f"{next(iter(change))} was .* and is"
        with pytest.raises(ConditionError, match=words), spark_errors_as_ours():
            appended(asked(**change), tmp_path)


def test_a_clock_lets_a_silent_stream_go_on(spark: SparkSession, tmp_path: Path) -> None:
    files = arrived(tmp_path, 7)
    silent = pa.table(
        {
            name: column[:0]
            for name, column in zip(files[1][0].column_names, files[1][0].columns, strict=True)
        }
    )
    shutil.rmtree(tmp_path / "1")
    write_files(tmp_path / "1", [silent])
    frames = streams_in(spark, tmp_path)
    clock = frames[0].selectExpr("timestamp_millis(seen_at) AS at")
    anti = {**ASKED, **ON_STREAMS, "how": "anti"}
    rows, _ = streamed(sequence_streams(frames, **anti, clock={"b": clock}), "sequences_clock")
    assert {row[1] for row in rows} - {-1} == set(range(300))
    held, _ = streamed(sequence_streams(frames, **anti), "sequences_held")
    assert all(row[0] is None for row in held) or len(held) < 50


def test_coincidences_of_streams(spark: SparkSession, tmp_path: Path) -> None:
    files = arrived(tmp_path, 8)
    asked: dict[str, Any] = {
        "within": 120, "confidence": 0.5, "at_least": 2, "time": TIMES, "by": "key",
        "options": CorrelateOptions(unit="ms"), "probability": True,
    }  # fmt: skip
    frames = dict(zip("xyz", streams_in(spark, tmp_path)[:3], strict=True))
    found = coincidence_streams(frames, **asked, delay=500, longest=100)
    rows, _ = streamed(found, "coincidences")
    tables = {name: pa.concat_tables(each[:-1]) for name, each in zip("xyz", files, strict=True)}
    expected = coincidence_tables(tables, **asked)
    found_rows = [dict(zip(found.columns, row, strict=True)) for row in rows]
    timely = [row for row in found_rows if -1 not in (row["x_id"], row["y_id"], row["z_id"])]
    assert {row["streams"] for row in timely} == {2, 3}
    assert rows_of(pa.Table.from_pylist(timely, expected.schema)) == rows_of(expected)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"delay": {"a": 5}}, "delay by name must name every stream .found none for b, c, d."),
        ({"delay": {"a": 5, "x": 1}}, "delay names streams, which are a, b, c, d .found 'x'."),
        ({"delay": -1}, "delay cannot be negative"),
        ({"longest": None, "confidence": 0.4}, "Declare the longest, for example longest='1s'"),
        ({"longest": {"b": 5}}, "lengths of b are known .*Leave b out"),
        ({"longest": 5, "time": "seen_at"}, "no stream has intervals of unknown length"),
        ({"clock": 5}, "clock is a dict of streams by name"),
        ({"options": CorrelateOptions(unit="ms", way="exchange")}, "way='exchange'.*Remove it"),
        ({"options": CorrelateOptions(unit="ms", slices=3)}, "Use slice_length"),
        ({"options": CorrelateOptions(unit="ms", max_pairs=3)}, "a stream has no end"),
        ({"options": CorrelateOptions()}, "unit='ms'"),
        ({"slice_length": 1}, "slice_length=1 is too short"),
        ({"names": ("a", "b", "late", "d"), "time": TIMES, "delay": 5}, "a stream that is called late"),
        ({"names": ("a", "b", "a_ahead", "d"), "time": TIMES, "delay": 5}, "that is called a.[.] Rename"),
        ({"name": ""}, "name must be a text"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    spark: SparkSession, tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    frames = streams_in(spark, tmp_path)
    with pytest.raises(ConditionError, match=words):
        sequence_streams(frames, **{**ASKED, **ON_STREAMS, **change})


def test_static_frames_and_results_of_streams_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    for number in range(3):
        (tmp_path / str(number)).mkdir()
    a, b, _, _ = streams_in(spark, tmp_path)
    static = spark.createDataFrame([(1, 2)], "id bigint, seen_at bigint")
    asked: dict[str, Any] = {
        "windows": [(0, 5)], "time": "seen_at", "delay": 5, "options": CorrelateOptions(unit="ms"),
    }  # fmt: skip
    with pytest.raises(ConditionError, match=r"b is a static DataFrame.*Use sequences for static"):
        sequence_streams([a, static], **asked)
    with pytest.raises(ConditionError, match=r"clock of b must be .*static"):
        sequence_streams([a, b], **asked, clock={"b": static})
    found = sequence_streams([a, b], **asked).selectExpr("a_id AS id", "b_id AS seen_at")
    with pytest.raises(ConditionError, match="b comes out of another operator"):
        sequence_streams([a, found], **asked)
    with pytest.raises(ConditionError, match="different streams"):
        coincidence_streams([a, a], 5, time="seen_at", delay=5, options=asked["options"])
