"""Clock errors of DataFrames, and joins on clocks put right: the answers are those of tables."""

from __future__ import annotations

import warnings
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from bench.clocks import SECOND, Truth, made
from bench.hunt.questions import corrected as drawn
from coincide import (
    ClockLimitsWarning,
    CorrelateOptions,
    DataError,
    JoinReport,
    SchemaError,
    UnmatchableRowsWarning,
    clock_error_tables,
    clock_errors,
    corrected_clock,
    correlate,
    correlate_files,
    correlate_streams,
    correlate_tables,
    overlapping,
    spans,
)
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.histogram_tables import in_order
from tests.helpers.rows import tuples
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import appended, stream_of, streamed, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def keyed() -> tuple[pa.Table, pa.Table]:
    """Three devices and null rows; c has nothing in common, and d is on one side alone."""
    rng = np.random.default_rng(5)
    sides: list[list[tuple[Any, Any, str]]] = [[], []]
    for device, offset in (("a", 3.0), ("b", -11.0)):
        one = made(rng, 90, 120, 120, Truth(offset, 30e-6, 0.003, 5000.0))
        for side, times in zip(sides, (one.left, one.right), strict=True):
            side += [(device, int(t), "x") for t in times]
    for side in sides:
        side += [("c", int(t), "x") for t in rng.uniform(0, 5000, 100) * SECOND]
        side += [(None, 5, "x"), ("a", None, "x")]
    sides[0] += [("d", 5, "x"), ("d", 6, "y")]
    own, others = (
        pa.table({
            "device": [d for d, _, _ in side],
            "time": pa.array([t for _, t, _ in side], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "kind": [k for _, _, k in side],
        })
        for side in sides
    )  # fmt: skip
    return own, others


def test_the_answer_is_that_of_tables(spark: SparkSession) -> None:
    own, others = keyed()
    frames = [spark.createDataFrame(each) for each in (own, others)]
    given: dict[str, Any] = {"max_offset": "60s", "by": "device", "match": "kind"}
    found = clock_errors(*frames, **given).orderBy("device").toArrow()
    with pytest.warns():
        wanted = clock_error_tables(own, others, **given)
    assert found.schema.names == wanted.schema.names
    assert found.cast(wanted.schema).equals(wanted)


def limits_that_do_not_fit() -> tuple[pa.Table, pa.Table]:
    """Clocks whose time is too short, whose answers are at a limit, and whose drift may go too far."""
    rng = np.random.default_rng(8)
    sides: list[list[tuple[str, int]]] = [[], []]
    for device, offset, drift in (("a", 59.5, 0.0), ("b", 3.0, 199e-6), ("c", 5.0, 10e-6)):
        one = made(rng, 90, 120, 120, Truth(offset, drift, 0.003, 5000.0))
        for side, times in zip(sides, (one.left, one.right), strict=True):
            side += [(device, int(t)) for t in times]
    for device, span, size in (
        ("short", 300, 60), ("short, too", 100, 60), ("long", 1_000_000, 400),
        ("longer", 1_200_000, 400),
    ):  # fmt: skip
        for side in sides:
            side += [(device, int(t)) for t in rng.uniform(0, span, size) * SECOND]
    own, others = (
        pa.table({
            "device": [device for device, _ in side],
            "time": pa.array([t for _, t in side], pa.int64()).cast(pa.timestamp("us", "UTC")),
        })
        for side in sides
    )  # fmt: skip
    return own, others


@pytest.mark.parametrize("by", ["device", ()])
def test_limits_are_warned_of_as_of_tables(spark: SparkSession, by: Any) -> None:
    own, others = limits_that_do_not_fit()
    if not by:
        own, others = (each.filter(pc.equal(each["device"], "a")) for each in (own, others))
    given: dict[str, Any] = {"max_offset": "60s", "by": by}
    report = JoinReport()
    found = clock_errors(*map(spark.createDataFrame, (own, others)), **given, report=report)
    rows = found.toArrow()
    with pytest.warns(ClockLimitsWarning) as told:
        report.summary()
    with pytest.warns(ClockLimitsWarning) as wanted:
        table = clock_error_tables(own, others, **given)
    assert sorted(str(each.message) for each in told) == sorted(
        str(each.message) for each in wanted
    )
    assert len(told) == (4 if by else 1)
    assert rows.num_rows == table.num_rows
    assert rows.schema.names == table.schema.names


def test_limits_that_fit_are_not_warned_of(spark: SparkSession) -> None:
    frames = [spark.createDataFrame(each) for each in keyed()]
    report = JoinReport()
    clock_errors(*frames, max_offset="60s", by="device", match="kind", report=report).toArrow()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClockLimitsWarning)
        report.summary()


def test_numbers_without_keys(spark: SparkSession) -> None:
    one = made(np.random.default_rng(2), 60, 100, 100, Truth(-4.0, 0.0, 0.003, 5000.0))
    own, others = (pa.table({"time": times / SECOND}) for times in (one.left, one.right))
    frames = [spark.createDataFrame(each) for each in (own, others)]
    options = CorrelateOptions(unit="s", tick="us")
    found = clock_errors(*frames, max_offset="60s", options=options).toArrow()
    wanted = clock_error_tables(own, others, max_offset="60s", options=options)
    assert found.cast(wanted.schema).equals(wanted)


def off(seed: int, size: int, unit: str) -> pa.Table:
    """Stamps of two clocks that were set, of one without an answer, and of none."""
    rng = np.random.default_rng(seed)
    return pa.table({
        "id": np.arange(size),
        unit: pa.array(rng.choice(["a", "b", "c", "x"], size), mask=rng.random(size) < 0.05),
        "t": pa.array(np.sort(rng.integers(-100, 1500, size)), mask=rng.random(size) < 0.05),
    })  # fmt: skip


ERRORS = pa.table({
    "device": ["b", "a", "a", "b", "c", "a"],
    "status": [*["found"] * 4, "not found", "found"],
    "start": pa.array([0, 300, 100, 700, None, 900], pa.int64()),
    "end": pa.array([600, 700, 200, 1000, None, 1400], pa.int64()),
    "offset": [5.5, -20.25, 10.0, 40.0, None, 7.125],
    "drift": [1000.0, -3000.0, 0.0, 333.3, None, 21.7],
    "spread": [1.5, 0.0, 2.25, 0.25, None, 1.0],
})  # fmt: skip
CLOCK = corrected_clock("t", ERRORS, by=[("unit", "device")])
LEFT, RIGHT = off(1, 400, "unit"), off(2, 380, "device")
ANY: dict[str, Any] = {
    "within": (-4, 15), "confidence": 0.3, "probability": True, "left_time": CLOCK, "right_time": "t",
}  # fmt: skip
BOTH: dict[str, Any] = {
    **ANY, "right_time": corrected_clock("t", ERRORS.slice(0, 4), by="device"), "by": [("unit", "device")],
}  # fmt: skip
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exchange": ({**ANY, "how": "full"}, {"way": "exchange", "slices": 5}),
    "small left": ({**BOTH, "emit": "best"}, {"way": "broadcast-left"}),
    "small right": ({**BOTH, "how": "left"}, {"way": "broadcast-right"}),
    "both small": (ANY, {"way": "broadcast-both"}),
    "mutual": ({**BOTH, "matching": "mutual"}, {"way": "exchange", "slices": 3}),
}


@pytest.mark.filterwarnings("ignore::coincide.UnmatchableRowsWarning")
@pytest.mark.parametrize("name", WAYS)
def test_a_join_on_a_corrected_clock(spark: SparkSession, name: str) -> None:
    asked, options = WAYS[name]
    wanted = correlate_tables(LEFT, RIGHT, **asked)
    frames = map(spark.createDataFrame, (LEFT, RIGHT))
    found = correlate(*frames, **asked, options=CorrelateOptions(**options))
    assert in_order(found.toArrow()) == in_order(wanted)
    assert wanted.num_rows > 30


KINDS: dict[str, tuple[list[Any], pa.DataType, pa.DataType]] = {
    "booleans": ([True, False, None, None], pa.bool_(), pa.bool_()),
    "bytes": ([b"\xff\x00", b"\xfe", b"", b"a"], pa.binary(), pa.large_binary()),
    "dates": ([1, -2, 20_000, 4], pa.date32(), pa.date32()),
    "instants": ([10**15, 10**15 + 1, 0, 9], pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
    "local times": ([10**15, 10**15 + 1, 0, 9], pa.timestamp("us"), pa.timestamp("us")),
    "decimals": (["1.50", "0.00", "-7.25", "9.00"], pa.decimal128(9, 2), pa.decimal128(12, 4)),
    "whole numbers": ([7, 8, 9, 10], pa.int16(), pa.uint64()),
}  # fmt: skip


AROUND = {
    each: corrected_clock("t", ERRORS, by=[("unit", "device")], around=each)
    for each in ("fitted", 3)
}


@pytest.mark.filterwarnings("ignore::coincide.UnmatchableRowsWarning")
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", ["exchange", "small left", "both small"])
def test_a_join_on_a_corrected_clock_with_a_width(
    spark: SparkSession, name: str, around: Any
) -> None:
    asked, options = WAYS[name]
    asked = {**asked, "left_time": AROUND[around]}
    wanted = correlate_tables(LEFT, RIGHT, **asked)
    frames = map(spark.createDataFrame, (LEFT, RIGHT))
    found = correlate(*frames, **asked, options=CorrelateOptions(**options))
    assert in_order(found.toArrow()) == in_order(wanted)
    assert wanted.num_rows > 30


def stays(table: pa.Table, seed: int, unit: str) -> pa.Table:
    """Each stamp has an end; some ends are missing."""
    lengths = np.random.default_rng(seed).integers(0, 60, table.num_rows)
    mask = np.random.default_rng(seed).random(table.num_rows) < 0.1
    ends = pc.add(table["t"], pa.array(lengths, mask=mask))
    return (
        table.select(["id", unit, "t"])
        .append_column("e", ends)
        .append_column("d", pa.array(lengths))
    )


def ends_of_clocks(form: str) -> dict[str, Any]:
    start, end = (corrected_clock(name, ERRORS, by=[("unit", "device")]) for name in "te")
    right: dict[str, Any] = {"right_time": spans("t", "e"), "condition": overlapping()}
    return {
        "both": {**right, "left_time": spans(start, end, closed="left")},
        "open ends": {**right, "left_time": spans(start, end, open_ends=True), "how": "left"},
        "start": {**right, "left_time": spans(start, "e")},
        "end": {**right, "left_time": spans("t", end), "how": "left"},
        "lengths": {**right, "left_time": spans(start, duration="d"), "emit": "counts"},
        "open lengths": {**right, "left_time": spans(start, duration="d", open_ends=True)},
        "wide": {
            **right, "left_time": spans(start, end, around=4), "confidence": 0.4, "probability": True,
        },
        "of right": {"left_time": spans("t", "e"), "condition": overlapping(), "right_time": spans(
            *(corrected_clock(name, ERRORS, by="device") for name in "te")
        )},
    }[form]  # fmt: skip


FORMS = ["both", "open ends", "start", "end", "lengths", "open lengths", "wide", "of right"]


@pytest.mark.filterwarnings("ignore::coincide.UnmatchableRowsWarning")
@pytest.mark.parametrize("form", FORMS)
def test_spans_of_corrected_clocks(spark: SparkSession, form: str) -> None:
    own, others = stays(LEFT, 3, "unit"), stays(RIGHT, 4, "device")
    asked = ends_of_clocks(form)
    wanted = correlate_tables(own, others, **asked, options=CorrelateOptions(invalid="drop"))
    way = ("exchange", "broadcast-both", "broadcast-right")[FORMS.index(form) % 3]
    options = CorrelateOptions(way=way, invalid="drop")
    frames = map(spark.createDataFrame, (own, others))
    found = correlate(*frames, **asked, options=options)
    assert in_order(found.toArrow()) == in_order(wanted)
    assert wanted.num_rows > 30


@pytest.mark.filterwarnings("ignore::coincide.UnmatchableRowsWarning")
@pytest.mark.parametrize("way", ["exchange", "broadcast-left", "auto"])
def test_drawn_clocks_that_were_put_right(spark: SparkSession, way: Any) -> None:
    def joined(left: pa.Table, right: pa.Table, *given: Any, **asked: Any) -> pa.Table:
        frames = (frame(spark, table) for table in (left, right))
        options = replace(asked.pop("options", CorrelateOptions()), way=way)
        return correlate(*frames, *given, **asked, options=options).toArrow()

    for seed in range(2):
        random = np.random.default_rng([seed, *way.encode()])
        assert drawn.wrong(random, joined) is None
        assert drawn.wrong_spans(random, joined) is None


@pytest.mark.parametrize("way", ["exchange", "broadcast-left", "broadcast-both"])
def test_what_rows_lack_is_counted(spark: SparkSession, tmp_path: Path, way: Any) -> None:
    """With a planning job and without one; of files by tasks."""
    line = {"status": ["found"], "start": [0], "end": [5000], "offset": [50.0], "drift": [0.0]}
    rows = [
        (1, "k", 10, 20), (2, "k", 10, 7000), (3, "k", 20, None), (4, "k", None, 9),
        (5, "k", 9000, 9), (6, None, 40, None), (7, "k", 30, 90),
    ]  # fmt: skip
    columns = dict(zip(("id", "k", "s", "e"), zip(*rows, strict=True), strict=True))
    own = pa.table({name: pa.array(values) for name, values in columns.items()})
    others = pa.table({"id": [9], "k": ["k"], "s": [0], "e": [10_000]})
    start, end = (corrected_clock(name, line) for name in "se")
    of_spans: dict[str, Any] = {
        "condition": overlapping(),
        "by": "k",
        "right_time": spans("s", "e"),
    }
    of_stamps: dict[str, Any] = {"within": (-9, 9), "confidence": 0.5, "by": "k", "right_time": "s"}
    for asked, time, lacking in (
        (of_spans, spans(start, end), {"no_segment": 2, "no_end": 1}),
        (of_spans, spans("s", "e"), {"no_end": 1}),
        (of_spans, spans(start, end, open_ends=True), {"no_segment": 2}),
        (of_stamps, start, {"no_segment": 1}),
    ):
        report, plain = JoinReport(), JoinReport()
        sides = map(spark.createDataFrame, (own, others))
        options = CorrelateOptions(way=way, invalid="drop")
        correlate(*sides, **asked, left_time=time, options=options, report=report).count()
        correlate_tables(
            own, others, **asked, left_time=time, report=plain, options=CorrelateOptions(invalid="drop")
        )  # fmt: skip
        found, due = report.summary().left, plain.summary().left
        assert found is not None
        assert due is not None
        assert (found.unmatchable, found.lacking) == (due.unmatchable, due.lacking)
        assert found.lacking == lacking
    for name, table in (("own", own), ("others", others)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    report = JoinReport()
    files = tmp_path / "own.parquet", tmp_path / "others.parquet"
    correlate_files(spark, *files, **of_stamps, left_time=start, report=report).count()
    assert report.summary().way == "files"
    assert report.summary().left.lacking == {"no_segment": 1}  # type: ignore[union-attr]


def test_files_of_spans_of_corrected_clocks(spark: SparkSession, tmp_path: Path) -> None:
    own, others = stays(LEFT, 3, "unit"), stays(RIGHT, 4, "device")
    for name, table in (("left", own), ("right", others)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=40)
    asked, report = ends_of_clocks("both"), JoinReport()
    found = correlate_files(
        spark, tmp_path / "left.parquet", tmp_path / "right.parquet", **asked, report=report,
        options=CorrelateOptions(way="files", invalid="drop"),
    )  # fmt: skip
    wanted = correlate_tables(own, others, **asked, options=CorrelateOptions(invalid="drop"))
    assert in_order(found.toArrow()) == in_order(wanted)
    assert report.summary().way == "files"


@pytest.mark.filterwarnings("ignore::coincide.UnmatchableRowsWarning")
def test_clocks_of_any_kind_of_name(spark: SparkSession) -> None:
    """As tables, where the other tests hold them to clocks with letters for names."""
    left, errors, clocks = LEFT, ERRORS, {}
    for name, (values, kind, stored) in KINDS.items():
        if kind == pa.decimal128(9, 2):
            values = [Decimal(each) for each in values]
        units, devices = (
            pa.array(
                [values["abcx".index(x)] if x else None for x in table[column].to_pylist()], kind
            )
            for table, column in ((LEFT, "unit"), (ERRORS, "device"))
        )
        left = left.append_column(name, units)
        errors = ERRORS.append_column(name, devices.cast(stored)).drop_columns("device")
        if None in values:
            errors = errors.filter(pc.is_valid(errors[name]))
        clocks[name] = corrected_clock("t", errors, by=name)
    own = spark.createDataFrame(left).withColumn(
        "local times", F.expr("CAST(`local times` AS TIMESTAMP_NTZ)")
    )
    frames = own, spark.createDataFrame(RIGHT)
    for name in KINDS:
        given = {**ANY, "left_time": clocks[name]}
        wanted = correlate_tables(left, RIGHT, **given)
        options = CorrelateOptions(way="broadcast-both")
        assert wanted.num_rows > 30
        assert in_order(correlate(*frames, **given, options=options).toArrow()) == in_order(
            wanted
        ), name
    clock = corrected_clock("t", ERRORS, by=[("dates", "device")])
    with pytest.raises(SchemaError, match="Cast one so that both are the same"):
        correlate(*frames, **{**ANY, "left_time": clock})


@pytest.mark.filterwarnings("ignore::coincide.UnmatchableRowsWarning")
def test_files_of_a_corrected_clock(spark: SparkSession, tmp_path: Path) -> None:
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=40)
    report = JoinReport()
    found = correlate_files(
        spark, tmp_path / "left.parquet", tmp_path / "right.parquet", **ANY, report=report,
        options=CorrelateOptions(way="files", slices=4),
    )  # fmt: skip
    wanted = correlate_tables(LEFT, RIGHT, **ANY)
    assert in_order(found.toArrow()) == in_order(wanted)
    summary = report.summary()
    assert summary.way == "files"
    assert summary.left.unmatchable > LEFT["t"].null_count


def test_stamps_put_right_by_what_spark_found(spark: SparkSession) -> None:
    own, others = keyed()
    frames = [spark.createDataFrame(each) for each in (own, others)]
    errors = clock_errors(*frames, max_offset="60s", by="device")
    given: dict[str, Any] = {
        "within": "10ms", "confidence": 0.5, "right_time": "time", "by": "device",
        "left_columns": "time", "right_columns": "time",
        "left_time": corrected_clock("time", errors, by="device"),
    }  # fmt: skip
    report = JoinReport()
    found = correlate(*frames, **given, report=report).toArrow()
    with pytest.warns(UnmatchableRowsWarning):
        wanted = correlate_tables(own, others, **given)
    assert in_order(found) == in_order(wanted)
    assert wanted.num_rows >= 175
    assert report.summary().left.unmatchable >= 104  # c, d, no device, no time


def test_what_a_corrected_time_may_not_be(spark: SparkSession) -> None:
    frames = [spark.createDataFrame(each) for each in (LEFT, RIGHT)]
    named = frames[0].withColumnRenamed("id", "coincide_until")
    with pytest.raises(SchemaError, match="'coincide_until' is reserved"):
        correlate(named, frames[1], **ANY)
    far = spark.createDataFrame(
        pa.table({"id": [1], "unit": ["z"], "t": pa.array([2**61], pa.int64())})
    )
    with pytest.raises(DataError, match=r"left: .* 1 row"):
        correlate(far, frames[1], **ANY).toArrow()


@pytest.mark.slow
def test_streams_of_a_corrected_clock(spark: SparkSession, tmp_path: Path) -> None:
    """The clock is put right in each micro-batch: of two streams, and of one that meets a table."""
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    stamp = pa.timestamp("ms", "UTC")

    def stamps(column: pa.ChunkedArray) -> pa.Array:
        return pc.add(column, 1_700_000_000_000).combine_chunks().cast(stamp)

    far = 10**9
    plain = ERRORS.drop_columns("spread")
    last = pa.table([["z"], ["found"], [far], [far + 1], [0.0], [0.0]], plain.schema.names)
    errors = pa.concat_tables([plain, last])
    offsets = pc.round(errors["offset"]).cast(pa.int64()).cast(pa.duration("ms"))
    for i, column in ((2, stamps(errors["start"])), (3, stamps(errors["end"])), (4, offsets)):
        errors = errors.set_column(i, errors.schema.names[i], column)
    given: dict[str, Any] = {
        "within": ("-4ms", "15ms"), "confidence": 0.3, "right_time": "t",
        "left_time": corrected_clock("t", errors, by=[("unit", "device")]),
    }  # fmt: skip
    tables, streams = [], []
    for table, closes in ((LEFT, far), (RIGHT, far + 10_000)):
        # Rows that close all slices but their own come last.
        whole = pa.concat_tables([table, pa.table([[-1], ["z"], [closes]], table.schema.names)])
        whole = whole.set_column(2, "t", stamps(whole["t"]))
        folder = write_files(tmp_path / str(closes), [whole.slice(0, 200), whole.slice(200)])
        kind = f"id bigint, {table.schema.names[1]} string, t timestamp"
        streams.append(stream_of(spark, folder, kind))
        tables.append(whole.slice(0, table.num_rows))
    with pytest.warns(UnmatchableRowsWarning, match="of left_time after the last segment"):
        both = correlate_streams(
            *streams, left_delay="2s", right_delay="2s", name="clocks", **given
        )
    static = spark.createDataFrame(tables[1])
    options = CorrelateOptions(way="broadcast-right", right_longest=0)
    one = correlate(streams[0], static, **given, options=options)
    with pytest.warns(UnmatchableRowsWarning):
        wanted = correlate_tables(*tables, **given).select(["left_id", "right_id"])
    expected = sorted(tuples(wanted))
    appended(both.select("left_id", "right_id"), tmp_path)
    rows = spark.read.parquet(str(tmp_path / "found")).collect()
    assert sorted(map(tuple, rows)) == expected
    rows, _ = streamed(one.select("left_id", "right_id"), "corrected")
    assert sorted(rows) == expected

    # A restart with other errors, where there are new rows: the old ones were put right by the first ones.
    new = pa.table([[-2], ["z"], stamps(pa.chunked_array([[far + 20_000]]))], RIGHT.schema.names)
    pq.write_table(new, tmp_path / str(far + 10_000) / "new.parquet")
    offsets = pc.add(offsets, pa.scalar(500, pa.duration("ms")))
    errors = errors.set_column(4, "offset", offsets)
    given["left_time"] = corrected_clock("t", errors, by=[("unit", "device")])
    both = correlate_streams(*streams, left_delay="2s", right_delay="2s", name="clocks", **given)
    with pytest.raises(StreamingQueryException, match="left_timestamps was 'clock errors"):
        appended(both.select("left_id", "right_id"), tmp_path)
    assert len(expected) > 100
