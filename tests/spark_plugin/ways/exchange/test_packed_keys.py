"""Readings and events of files in no order: packed by stream where they are read, the answer the same."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from bench.sessions import any_frame
from coincide import (
    BorderOptions,
    BorderReport,
    CorrelateOptions,
    DataError,
    TransitionReport,
    border_crossings,
    transition_tables,
    transitions,
)
from coincide.command_line import run
from coincide.engine.borders.arguments import BorderArguments
from coincide.engine.borders.readings import ReadingColumns
from coincide.engine.borders.reports import BorderSummary
from coincide.engine.files.finding import find_files
from coincide.engine.files.footers import Footer, read_footers
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import places_of
from coincide.engine.reports.metrics import of_all, with_numbers
from coincide.engine.transitions.arguments import EventColumns, TransitionArguments
from coincide.engine.transitions.reports import TransitionSummary
from coincide.model.borders.crossings import EVENTS
from coincide.model.transitions import TRANSITIONS
from spark_plugin.frames.borders import collected_queries
from spark_plugin.frames.columns import spark_type, wire_kind
from spark_plugin.frames.plain_files import deals_of
from spark_plugin.tasks.borders import ShippedQueries, as_table
from spark_plugin.tasks.counting import CountingTask
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packed_borders import PackedCrossingTask, ReadingKeyRows
from spark_plugin.tasks.packed_keys import SLICE, TOLD, WHOLE, Cells, KeyPackTask, KeyRows
from spark_plugin.tasks.packed_transitions import CrossingKeyRows, PackedTransitionTask
from spark_plugin.tasks.wire import LABEL, Shipment, as_stream
from spark_plugin.ways.exchange import packed_keys
from tests.helpers.border_tables import NAMES, random_queries, random_readings
from tests.helpers.border_way_cases import random_case
from tests.helpers.border_ways import Rows, expected, numbers_by
from tests.helpers.direct_layouts import write_layout
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import refusal

pytestmark = pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")


def opened(place: Path, ranged: list[str]) -> tuple[PlannedFiles, list[Footer]]:
    files = find_files("readings", place)
    footers = read_footers(files, ranged)
    return PlannedFiles.of(files, footers[0].schema, footers), footers


def exchanged(
    task: KeyPackTask, random: np.random.Generator, taken: CountingTask, metrics: str
) -> tuple[list[dict[str, Any]], dict[str, int], pa.Table]:
    """Rows that a task finds in the packs of another, as an exchange brings them; numbers; the packs."""
    numbers = [pa.record_batch({"id": [k]}) for k in range(len(task.deals))]
    packs = pa.Table.from_batches([b for each in numbers for b in task([each])])
    packs = packs.take(pa.array(random.permutation(packs.num_rows)))
    rows: list[dict[str, Any]] = []
    told: list[dict[str, int]] = []
    for label in np.unique(packs[LABEL].to_numpy()).tolist():
        own = packs.filter(pa.array(packs[LABEL].to_numpy() == label))
        order = np.argsort(own[SLICE].to_numpy(), kind="stable")
        batches = own.take(pa.array(order)).to_batches(max_chunksize=int(random.integers(1, 5)))
        rows_of_bucket, told_of_bucket = read_out(taken, batches, metrics)
        rows += rows_of_bucket
        told += told_of_bucket
    return rows, of_all(told), packs


def read_out(
    task: CountingTask, batches: Iterable[pa.RecordBatch], metrics: str
) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
    rows, told = [], []
    for batch in task(batches):
        for row in batch.to_pylist():
            numbers = row.pop(metrics)
            if numbers is None:
                rows.append(row)
            else:
                told.append(dict(zip(task.counted, numbers, strict=False)))
    return rows, told


def pack_task(
    files: PlannedFiles, footers: list[Footer], rows: KeyRows, cells: Cells, tasks: int
) -> KeyPackTask:
    deals = deals_of(places_of(footers), tasks)
    return KeyPackTask(files, rows, cells, partition_labels(cells.buckets), deals, 7)


def random_cells(
    random: np.random.Generator, files: PlannedFiles, footers: list[Footer], rows: KeyRows
) -> Cells:
    buckets = int(random.choice([1, 2, 9, 40]))  # also more than streams
    return Cells(buckets, packed_keys.edges_of(files, footers, rows, int(random.choice([1, 2, 9]))))


def test_crossings_of_any_layout_agree_with_the_oracle(tmp_path: Path) -> None:
    cut = whole_and_cut = found = 0
    for seed in range(60):
        case, random = random_case(seed, for_spark=True), np.random.default_rng(seed)
        place = write_layout(tmp_path / str(seed), case.readings, random, order="shuffled")
        arguments = BorderArguments(**case.arguments)
        files, footers = opened(place, [arguments.time])
        columns = ReadingColumns.of(files.schema, arguments)
        stream = pa.int64()
        if case.has_streams:
            stream = wire_kind(spark_type("who", files.schema.field("who").type))
        rows = ReadingKeyRows(columns, stream)
        cells = random_cells(random, files, footers, rows)
        queries, ids, _ = collected_queries(case.queries, arguments)
        shipped = ShippedQueries(str(seed), Shipment(as_stream(as_table(queries, ids))))
        names = tuple(f"out{i}" for i in range(len(arguments.made)))
        task = PackedCrossingTask(rows, cells, arguments, shipped, names, "metrics")
        packing = pack_task(files, footers, rows, cells, int(random.integers(1, 4)))
        made, told, packs = exchanged(packing, random, task, "metrics")
        none = BorderSummary(tick=columns.tick, time_kind=columns.time_kinds[0])
        counts = numbers_by(
            replace(with_numbers(none, told), queries=len(queries.ids), empty=queries.empty)
        )
        wanted = expected(case, on_spark=True)
        is_day = pa.types.is_date(files.schema.field("who").type) if case.has_streams else False
        assert crossings_of(made, case.has_streams, is_day, ids, case.queries) == wanted.rows
        assert {name: counts[name] for name in wanted.counts} == wanted.counts
        slices = np.unique(packs.filter(packs[TOLD].is_null())[SLICE].to_numpy())
        cut += slices.size > 1
        whole_and_cut += slices.size > 1 and WHOLE in slices
        found += len(wanted.rows)
    assert cut > 15
    assert whole_and_cut > 3
    assert found > 1000


def crossings_of(
    rows: list[dict[str, Any]], has_streams: bool, is_day: bool, ids: pa.Array, queries: pa.Table
) -> Rows:
    """Crossings like those of the oracle: ids as they were, words of events."""
    names = dict(zip(ids.to_pylist(), queries["area"].to_pylist(), strict=True))
    found = []
    for row in rows:
        query, *rest = row.values()
        streams = [rest.pop(0)] if has_streams else []
        if is_day:
            streams = [dt.date(1970, 1, 1) + dt.timedelta(days=each) for each in streams]
        event, *times = rest
        found.append((names[query], *streams, EVENTS[event], *times))
    return sorted(found, key=repr)


def random_events(random: np.random.Generator, n: int) -> pa.Table:
    """Events in no order: repeats, invalid ones, and no two of a query and stream at one midpoint."""
    columns: dict[str, Any] = {
        "query_id": random.integers(0, 3, n),
        "stream_id": [f"s{k}" for k in random.integers(0, 3, n)],
    }
    midpoint, margin = random.permutation(5 * n)[:n], random.integers(0, 3, n)
    words = random.choice(["I", "O", "I", "O", "in"], n, p=[0.24, 0.24, 0.24, 0.24, 0.04])
    columns |= {
        "event": pa.array(words.tolist(), pa.string(), mask=random.random(n) < 0.03),
        "min_time": midpoint - margin,
        "max_time": pa.array(midpoint + margin, mask=random.random(n) < 0.03),
    }
    return pa.table(columns)


def test_transitions_of_any_layout_are_those_of_tables(tmp_path: Path) -> None:
    cut = 0
    for seed in range(50):
        random = np.random.default_rng(seed)
        events = random_events(random, int(random.integers(1, 150)))
        place = write_layout(tmp_path / str(seed), events, random, order="given")
        is_one = bool(random.random() < 0.2)
        arguments: dict[str, Any] = {
            "within": int(random.integers(0, 60)), "confidence": float(random.choice([0.5, 0.8])),
            "repeated": str(random.choice(["first", "last"])),
            "stream": None if is_one else "stream_id", "options": CorrelateOptions(invalid="drop"),
        }  # fmt: skip
        until = None if random.random() < 0.5 else int(random.integers(0, 800))
        asked = TransitionArguments(**arguments)
        files, footers = opened(place, list(asked.clocks))
        columns = EventColumns.of(files.schema, asked)
        kinds = pa.int64(), pa.int64() if is_one else pa.string()
        rows = CrossingKeyRows(columns, kinds, is_measured=until is None)
        cells = random_cells(random, files, footers, rows)
        names = tuple(f"out{i}" for i in range(len(columns.schema)))
        task = PackedTransitionTask(rows, cells, until, names, "metrics")
        packing = pack_task(files, footers, rows, cells, int(random.integers(1, 4)))
        made, told, packs = exchanged(packing, random, task, "metrics")
        report = TransitionReport()
        wanted = transition_tables(events, until=until, report=report, **arguments)
        place_of_word = len(asked.ids)
        found = []
        for row in made:
            values = list(row.values())
            values[place_of_word] = TRANSITIONS[values[place_of_word]]
            found.append(tuple(values))
        assert sorted(found, key=repr) == sorted(
            (tuple(row.values()) for row in wanted.to_pylist()), key=repr
        )
        assert with_numbers(TransitionSummary(tick=columns.tick), told) == report.summary()
        cut += bool((packs[SLICE].to_numpy() != WHOLE).any())
    assert cut > 10


def test_one_stream_of_many_is_cut_by_time_and_others_are_not() -> None:
    streams = pa.array(np.where(np.arange(1000) % 2 == 0, 7, np.arange(1000)))
    cells = Cells(16, np.arange(100, 1000, 100))
    buckets, slices = cells.cells_of([streams], np.arange(1000))
    giant = buckets == buckets[0]
    assert (slices[giant] == np.arange(1000)[giant] // 100).all()
    assert (slices[~giant] == WHOLE).all()
    assert np.unique(buckets).size == 16


@pytest.mark.parametrize("far", [2**60, -(2**60)])
@pytest.mark.parametrize("share", [1, 400, 2_000])
def test_time_is_cut_where_rows_are(far: int, share: int, tmp_path: Path) -> None:
    at = np.random.default_rng(2).permutation(np.append(np.arange(4_000), np.full(share, far)))
    table = pa.table({"who": np.ones(at.size, np.int64), "at": at, "x": at / 2})
    columns = ReadingColumns.of(table.schema, BorderArguments("who", "at", "x"))
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=100, write_statistics=False)
    rows = ReadingKeyRows(columns, pa.int64())
    edges = packed_keys.edges_of(*opened(tmp_path, ["at"]), rows, 8)
    sizes = np.bincount(Cells(1, edges).slices_of(rows.times_of(rows.read(table)[0])))
    assert sizes.max() < max(share, at.size / 8) * 1.3
    assert sizes.size >= 5


@pytest.mark.spark
def test_batches_without_a_bound_are_small_or_rows_come_through_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_cells(monkeypatch)
    monkeypatch.setattr(packed_keys, "_MOST_BYTES", 1_000)
    given = random_readings(5, 500, pa.array([1]), pa.int64())
    pq.write_table(given, tmp_path / "r.parquet")
    for size, way in (("64m", "files"), ("2147483647", "exchange")):
        spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", size)
        report = BorderReport()
        made = border_crossings(
            spark.read.parquet(str(tmp_path)), random_queries(6, pa.array(range(40))), values="x",
            options=BorderOptions(unit="ms", invalid="drop"), report=report, **NAMES,
        )  # fmt: skip
        assert made.toArrow().num_rows
        assert report.summary().way == way
        assert report.summary().readings == given.num_rows


def small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_LEAST_ROWS", 5), ("_MOST_ROWS", 40), ("_SLICE_ROWS", 60)):
        monkeypatch.setattr(packed_keys, name, value)


TYPES: dict[str, tuple[pa.Array, pa.DataType]] = {
    "texts, instants": (pa.array([f"it's {k}" for k in range(9)]), pa.timestamp("us", "UTC")),
    "a giant": (pa.array([3] * 40 + list(range(20)), pa.int16()), pa.int64()),
    "days, floats": (pa.array([dt.date(2024, 1, k) for k in range(1, 6)]), pa.float64()),
}


@pytest.mark.spark
@pytest.mark.parametrize("types", TYPES)
def test_crossings_are_those_of_the_exchange(
    spark: SparkSession, types: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_cells(monkeypatch)
    streams, times = TYPES[types]
    given = random_readings(5, 600, streams, times)
    nulls = pa.array([None] * 5, given["stream"].type)
    given = pa.concat_tables([given, given.slice(0, 5).set_column(0, "stream", nulls)])
    place = write_layout(tmp_path / "r", given, np.random.default_rng(1), order="shuffled")
    pq.write_table(given.slice(0, 0), place / "empty.parquet")
    more = given.append_column("more", pa.array(range(given.num_rows)))
    pq.write_table(more.slice(3, 40), place / "more.parquet", row_group_size=7)
    unit = {"unit": "ms"} if pa.types.is_floating(times) else {}
    options = BorderOptions(interpolate=True, invalid="drop", **unit)  # type: ignore[arg-type]
    frame, found, summaries = spark.read.parquet(str(place)), [], []
    for each in (frame, any_frame(frame)):
        report = BorderReport()
        made = border_crossings(
            each, random_queries(6, pa.array(range(40))), values="x", options=options,
            report=report, **NAMES,
        )  # fmt: skip
        found.append(in_order(made.toArrow()))
        summaries.append(report.summary())
    assert found[0] == found[1]
    assert len(found[0]) > 100
    assert replace(summaries[0], retrieved=0) == replace(summaries[1], retrieved=0)
    assert summaries[0].repeated
    assert summaries[0].gaps
    assert summaries[0].dropped == {"null": 5}
    assert [each.way for each in summaries] == ["files", "exchange"]
    assert summaries[0].why.startswith("tasks read the files and pack rows by stream, ")
    assert summaries[1].why == "rows come through Spark"


def events_of(n: int) -> pa.Table:
    """Events that go on at equal midpoints, too, in no order."""
    random = np.random.default_rng(n)
    midpoint, margin = random.integers(0, 4 * n, n), random.integers(0, 3, n)
    return pa.table(
        {
            "query_id": pa.array(random.integers(0, 4, n), pa.int32()),
            "stream_id": [f"s{k}" for k in random.integers(0, 5, n)],
            "event": random.choice(["I", "O"], n).tolist(),
            "min_time": pa.array(midpoint - margin).cast(pa.timestamp("us", "UTC")),
            "max_time": pa.array(midpoint + margin).cast(pa.timestamp("us", "UTC")),
        }
    )


@pytest.mark.spark
@pytest.mark.parametrize("until", [None, dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)])
def test_transitions_are_those_of_the_exchange(
    spark: SparkSession, until: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_cells(monkeypatch)
    place = write_layout(tmp_path / "e", events_of(700), np.random.default_rng(2), order="given")
    pq.write_table(events_of(700).slice(0, 0), place / "empty.parquet")
    frame, found, summaries = spark.read.parquet(str(place)), [], []
    for each in (frame, any_frame(frame)):
        report = TransitionReport()
        made = transitions(
            each, within="30us", confidence=0.7, repeated="last", until=until, report=report
        )
        found.append(in_order(made.toArrow()))
        summaries.append(report.summary())
    assert found[0] == found[1]
    assert len(found[0]) > 200
    assert summaries[0] == summaries[1]
    assert [each.way for each in summaries] == ["files", "exchange"]
    assert "pack rows by query_id and stream_id" in summaries[0].why


def written(place: Path, **columns: Any) -> Path:
    given = {"stream_id": [1, 1, 2], "time": [0, 9, 4], "value": [1.0, 30.0, 2.0]}
    pq.write_table(pa.table({**given, **columns}), place / "r.parquet")
    return place / "r.parquet"


QUERIES = pa.table({"query_id": [1], "lower": [20.0], "upper": [40.0]})


def crossings_in(frame: DataFrame, **words: Any) -> DataFrame:
    return border_crossings(frame, QUERIES, **words)


@pytest.mark.spark
def test_a_file_that_changed_since_it_was_planned_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = written(tmp_path)
    found = crossings_in(spark.read.parquet(str(path)))
    written(tmp_path, value=[1.0, 30.0, 30.0])
    assert "r.parquet has changed since" in refusal(found)
    events = tmp_path / "e.parquet"
    pq.write_table(events_of(50), events)
    found = transitions(spark.read.parquet(str(events)), within="9us", confidence=0.9)
    pq.write_table(events_of(51), events)
    assert "e.parquet has changed since" in refusal(found)


@pytest.mark.spark
def test_invalid_rows_are_refused_as_by_the_exchange(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(written(tmp_path, value=[1.0, float("inf"), 2.0])))
    words = [refusal(crossings_in(each)) for each in (frame, any_frame(frame))]
    assert words[0].startswith("readings: infinite values in value in 1 row (found")
    assert words[0].replace("=inf)", "=Infinity)") == words[1]
    frame = spark.read.parquet(str(written(tmp_path, value=[1, 2**53 + 1, 2])))
    words = [refusal(crossings_in(each)) for each in (frame, any_frame(frame))]
    assert words[0].startswith("readings.value has integers beyond 2^53")
    assert words[0].split("(found")[0] == words[1].split("(found")[0]
    pq.write_table(events_of(50), tmp_path / "e.parquet")
    frame = spark.read.parquet(str(tmp_path / "e.parquet"))
    asked: dict[str, Any] = {"within": "9us", "confidence": 0.9}
    words = [refusal(transitions(each, **asked)) for each in (frame, any_frame(frame))]
    assert all("repeat the event before, I after I or O" in each for each in words)
    assert "intervals in" in refusal(transitions(frame, within="9us"))


@pytest.mark.spark
def test_no_rows_are_no_crossings(spark: SparkSession, tmp_path: Path) -> None:
    nothing = {"stream_id": pa.array([], pa.int64()), "time": pa.array([], pa.int64())}
    path = written(tmp_path, value=pa.array([], pa.float64()), **nothing)
    report = BorderReport()
    assert crossings_in(spark.read.parquet(str(path)), report=report).count() == 0
    assert (report.summary().readings, report.summary().way) == (0, "files")
    pq.write_table(events_of(5).slice(0, 0), tmp_path / "e.parquet")
    told = TransitionReport()
    frame = spark.read.parquet(str(tmp_path / "e.parquet"))
    assert transitions(frame, within="9us", report=told).count() == 0
    assert (told.summary().counts.events, told.summary().way) == (0, "files")


@pytest.mark.spark
def test_what_spark_reads_as_another_type_comes_through_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = written(tmp_path, time=pa.array([0, 9, 4], pa.int32()))
    schema, report = "stream_id long, time long, value double", BorderReport()
    frame = spark.read.schema(schema).parquet(str(path))
    assert crossings_in(frame, report=report).count() == 1
    assert (report.summary().readings, report.summary().way) == (3, "exchange")


@pytest.mark.spark
def test_the_command_packs_files_in_no_order(
    command_spark: Any, tmp_path: Path, capsys: Any
) -> None:
    n = 1_200_000
    readings = pa.table(
        {"stream_id": np.arange(n) % 7, "time": np.arange(n), "value": (np.arange(n) % 11) * 1.0}
    )
    pq.write_table(readings, tmp_path / "readings.parquet")
    queries = pa.table({"query_id": [7], "lower": [9.5], "upper": [10.5]})
    pq.write_table(queries, tmp_path / "queries.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("readings", "queries")]
    told = {}
    for way in ("auto", "files", "exchange"):
        words = ["borders", *files, "-o", str(tmp_path / way), "--way", way, "--json"]
        assert run([*words, "--engine", "spark"]) == 0
        told[way] = json.loads(capsys.readouterr().out)
    ways = {way: each.pop("way") for way, each in told.items()}
    why = {way: each.pop("why") for way, each in told.items()}
    assert ways == {"auto": "files", "files": "files", "exchange": "exchange"}
    assert "since the files are not in order of stream_id" in why["files"]
    assert why["exchange"] == "rows come through Spark"
    for each in told.values():
        each.pop("output"), each.pop("seconds", None)
    tables = [pq.read_table(tmp_path / way) for way in told]
    assert tables[0].num_rows > 10_000
    keys = [("stream_id", "ascending"), ("max_time", "ascending"), ("event", "ascending")]
    first, *others = [table.sort_by(keys) for table in tables]
    assert all(first.equals(other) for other in others)
    entered = {(each["entered"], each["left"], each["readings"]) for each in told.values()}
    assert len(entered) == 1


@pytest.mark.spark
def test_the_command_packs_events_in_no_order(
    command_spark: Any, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "events").mkdir()
    pq.write_table(events_of(400), tmp_path / "events" / "0.parquet", row_group_size=33)
    words = ["--within", "9us", "--confidence", "0.9", "--repeated", "last", "--engine", "spark"]
    told = {}
    for way in ("auto", "files", "exchange"):
        out = ["-o", str(tmp_path / way), "--way", way, "--json"]
        assert run(["transitions", str(tmp_path / "events"), *out, *words]) == 0
        told[way] = json.loads(capsys.readouterr().out)
    assert [each["way"] for each in told.values()] == ["files", "files", "exchange"]
    assert told["exchange"]["why"] == "rows come through Spark"
    assert told["files"]["found"] == told["exchange"]["found"]
    rows = [in_order(pq.read_table(tmp_path / way)) for way in told]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]
    out = ["-o", str(tmp_path / "none"), "--way", "files"]
    command_spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        assert run(["transitions", str(tmp_path / "events"), *out, *words]) == 2
    finally:
        command_spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert "--way files is not possible: events must be nothing but" in capsys.readouterr().err
    first = pq.read_table(tmp_path / "events" / "0.parquet")
    wide = first.set_column(0, "query_id", first.column(0).cast(pa.int64()))
    pq.write_table(wide, tmp_path / "events" / "1.parquet")
    assert run(["transitions", str(tmp_path / "events"), *out, *words]) == 2
    said = capsys.readouterr().err
    assert "--way files is not possible: events" in said
    assert "query_id" in said


def test_a_column_that_folders_name_is_packed_too(spark: SparkSession, tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / f"query_id={number}"
        folder.mkdir()
        own = events_of(40).drop_columns("query_id")
        pq.write_table(own, folder / "0.parquet", row_group_size=7)
    report = TransitionReport()
    asked: Any = {"within": "9us", "confidence": 0.9, "repeated": "last"}
    found = transitions(spark.read.parquet(str(tmp_path)), report=report, **asked)
    rows = in_order(found.toArrow())
    assert report.summary().way == "files"
    whole = pq.read_table(tmp_path, partitioning="hive")
    expected = transition_tables(whole, **asked)
    assert rows == in_order(expected.select(found.columns))
    assert rows


def test_a_changed_file_is_refused_by_the_task_that_reads_it(tmp_path: Path) -> None:
    path = written(tmp_path)
    files, footers = opened(tmp_path, ["time"])
    columns = ReadingColumns.of(files.schema, BorderArguments())
    task = pack_task(files, footers, ReadingKeyRows(columns, pa.int64()), Cells(3), 1)
    assert sum(batch.num_rows for batch in task([pa.record_batch({"id": [0]})])) > 1
    pq.write_table(pq.read_table(path).slice(1), path)
    with pytest.raises(DataError, match=r"r.parquet has changed since"):
        list(task([pa.record_batch({"id": [0]})]))
