"""What joins tell of themselves: numbers in a report, and each warning once, at the caller's line."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    DroppedRowsWarning,
    JoinReport,
    NoPairsWarning,
    RoundedTimesWarning,
    TimingCondition,
    UnmatchableRowsWarning,
    around,
    correlate,
    correlate_files,
    correlate_streams,
    correlate_tables,
    stream_tables,
    within,
)
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.reports.join_report import side_words
from coincide.model.units import Tick
from spark_plugin.ways.streaming.arguments import STATE_STORE
from tests.helpers.spark_cases import frame
from tests.helpers.spark_streams import stream_of, streamed, write_files

DROP = CorrelateOptions(invalid="drop")
CONDITION = TimingCondition(within(0, 5), 0.9)
NONE = TimingCondition(within(503, 505), 0.9)
FAR = TimingCondition(within(10**6, 10**6 + 5), 0.9)
N = 3000
COUNTS = SideCounts(N, 2, {"order": 2})


def events(shift: int = 0, **more: Any) -> pa.Table:
    """Instants 10 apart; of the first rows two have no time, and two end before they begin."""
    times = (10 * np.arange(N) + shift).tolist()
    late = [None, None, times[2] - 1, times[3] - 1, *times[4:]]
    return pa.table({"min_time": times, "max_time": late, "id": range(N), **more})


@contextmanager
def told(*kinds: type[Warning]) -> Iterator[list[str]]:
    """Exactly these warnings are given, in order and at this file's lines; their texts."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    ours = [each for each in caught if each.category.__module__ == "coincide.model.errors"]
    assert [each.category for each in ours] == list(kinds)
    assert {each.filename for each in ours} <= {__file__}
    texts += [str(each.message) for each in ours]


BOTH = [UnmatchableRowsWarning, DroppedRowsWarning]


def test_tables() -> None:
    report = JoinReport()
    with told(*BOTH, *BOTH) as texts:
        found = correlate_tables(events(), events(1), CONDITION, options=DROP, report=report)
    assert texts[0] == f"left, {N:,} rows: 2 without time or key."
    assert texts[3] == f"right, {N:,} rows: skipped 2 invalid rows (2 whose min is above max)."
    done = report.summary()
    assert (done.left, done.right, done.way, done.no_pairs) == (COUNTS, COUNTS, "in memory", None)
    assert done.counters is not None
    assert done.counters.pairs == found.num_rows == N - 4
    assert done.seconds is not None


def test_a_good_join_warns_of_nothing() -> None:
    good = events().slice(4)
    with told():
        correlate_tables(good, good, CONDITION)
        correlate_tables(good, good.slice(0, 0), CONDITION)  # empty, as its input


def test_why_nothing_was_found() -> None:
    good = events().slice(4)
    with told(NoPairsWarning) as texts:
        correlate_tables(good, good, FAR)
    assert texts[0].startswith("no pair is found: all right times are 970,050 ticks or more too")


def test_events_without_a_match_may_be_what_is_wanted() -> None:
    good, report = events().slice(4), JoinReport()
    with told():
        found = correlate_tables(good, good, FAR, how="anti", report=report)
    assert found.num_rows == N - 4
    no_pairs = report.summary().no_pairs
    assert no_pairs is not None
    assert no_pairs.as_dict()["is_asked_for"] is True
    nothing = good.set_column(0, "min_time", pa.nulls(N - 4, pa.int64()))
    with told(UnmatchableRowsWarning):
        correlate_tables(good, nothing, FAR, how="anti")
    with told(NoPairsWarning):
        correlate_tables(good, good, FAR, how="left", report=report)
    no_pairs = report.summary().no_pairs
    assert no_pairs is not None
    assert "is_asked_for" not in no_pairs.as_dict()


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("not_finite", "2 with NaN or infinity"),
        ("range", "2 out of range"),
        ("order", "2 whose min is above max"),
        ("length", "2 longer than declared"),
    ],
)
def test_dropped_rows_in_words(reason: str, words: str) -> None:
    assert side_words(SideCounts(5, 0, {reason: 2}), Tick("us")) == [
        f"skipped 2 invalid rows ({words})"
    ]


def test_rounding_and_range_are_told() -> None:
    floats = pa.table({"t": [1.0000004, 4e9, 2.0], "id": [0, 1, 2]})
    given: dict[str, Any] = {"left_time": "t", "right_time": "t"}
    options = CorrelateOptions(unit="s", invalid="drop")
    condition = TimingCondition(within("0s", "1s"), 1.0)
    with told(DroppedRowsWarning, DroppedRowsWarning) as texts:
        correlate_tables(floats, floats, condition, options=options, **given)
    assert "skipped 1 invalid row (1 out of range): a tick is 1 ns" in texts[0]
    assert "options=CorrelateOptions(tick='us') reaches 73,000, if no time is finer" in texts[0]
    options = CorrelateOptions(unit="s", tick="us")
    with told(RoundedTimesWarning, RoundedTimesWarning) as texts:
        correlate_tables(floats, floats, condition, options=options, **given)
    assert texts[0] == "left, 3 rows: times rounded by up to 400 ns."


def test_the_steps_of_32_bit_floats_are_told() -> None:
    singles = pa.table({"t": pa.array([1.7e9 + 200, 1.7e9], pa.float32()), "id": [0, 1]})
    report, options = JoinReport(), CorrelateOptions(unit="s")
    given: dict[str, Any] = {"left_time": "t", "right_time": "t", "within": ("0s", "1s")}
    with told(RoundedTimesWarning, RoundedTimesWarning) as texts:
        correlate_tables(singles, singles, options=options, report=report, **given)
    words = (
        "times rounded by up to 1.07 min, as 32-bit floats have steps of 2.13 min there: write such"
        " times as 64-bit floats"
    )
    assert texts[0] == f"left, 2 rows: {words}."
    assert words in str(report)
    with told(RoundedTimesWarning, RoundedTimesWarning) as texts:
        correlate_tables(singles[:1], singles, options=options, **given)
    assert texts == [f"left, 1 row: {words}.", f"right, 2 rows: {words}."]


def test_a_report_is_a_report() -> None:
    with pytest.raises(ConditionError, match=r"JoinReport\(\)"):
        correlate_tables(events(), events(), CONDITION, report=print)  # type: ignore[arg-type]
    with pytest.raises(ConditionError, match="Give this report to correlate"):
        JoinReport().summary()


# --- on Spark ---


@pytest.mark.spark
@pytest.mark.parametrize("way", ["exchange", "broadcast"])
def test_dataframes(spark: SparkSession, way: str) -> None:
    report, frames = JoinReport(), (frame(spark, events()), frame(spark, events(1)))
    options = CorrelateOptions(
        invalid="drop", way="exchange" if way == "exchange" else "broadcast-right"
    )
    with told(*BOTH, *BOTH):
        found = correlate(*frames, CONDITION, options=options, report=report)
    assert (report.left, report.right) == (COUNTS, COUNTS)
    with told():
        assert len(found.collect()) == N - 4
        done = report.summary()
    assert (done.left, done.right, done.way, done.no_pairs) == (COUNTS, COUNTS, way, None)
    assert done.counters is not None
    assert done.counters.pairs == N - 4


def declared(**more: Any) -> CorrelateOptions:
    return CorrelateOptions(left_longest=0, right_longest=0, slices=2, **more)


@pytest.mark.spark
@pytest.mark.parametrize("way", ["broadcast-left", "broadcast-right"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_declared_statistics_spare_the_look_not_the_counts(
    spark: SparkSession, way: str, how: str
) -> None:
    left, right = (
        frame(spark, pa.table({"t": [None, *range(shift, 10 * N, 10)], "id": range(N + 1)}))
        for shift in (0, 1)
    )
    report = JoinReport()
    found = correlate(
        left, right, CONDITION, left_time="t", right_time="t", how=how, report=report,
        options=declared(way=way),
    )  # fmt: skip
    assert report.left is None
    assert len(found.collect()) == N + (how == "left")
    with told(UnmatchableRowsWarning, UnmatchableRowsWarning):
        done = report.summary()
    assert (done.left, done.right) == (SideCounts(N + 1, 1), SideCounts(N + 1, 1))
    assert done.counters is not None
    assert done.counters.pairs == N


@pytest.mark.spark
def test_what_the_look_foresees(spark: SparkSession) -> None:
    good = events().slice(4)
    near, keyed = frame(spark, good), good.append_column("k", pa.array(["A"] * (N - 4)))
    other = good.append_column("k", pa.array(["a"] * (N - 4)))
    with told(NoPairsWarning) as texts:
        correlate(near, near, FAR)
    assert "all right times are" in texts[0]
    with told(NoPairsWarning) as texts:
        correlate(widened(spark, good), near, TimingCondition(within(3, 4), 1.0))
    assert "below the confidence" in texts[0]
    few = [frame(spark, table.slice(0, 200)) for table in (keyed, other)]
    with told(NoPairsWarning) as texts:
        correlate(*few, CONDITION, by="k")
    assert "'A' and 'a' differ only in case" in texts[0]
    with told():
        correlate(near, near, FAR, how="anti")
        correlate(near, near, NONE)  # which only the join can tell


def widened(spark: SparkSession, table: pa.Table) -> Any:
    return frame(spark, table).selectExpr("min_time", "max_time + 7 AS max_time", "id")


@pytest.mark.spark
def test_why_a_dataframe_is_empty(spark: SparkSession) -> None:
    keys = [f"key{i % 50}" for i in range(N)]
    left, right = (frame(spark, events(k=keys).slice(4)) for _ in range(2))
    report = JoinReport()
    for given in (CorrelateOptions(), declared()):
        with told():
            found = correlate(
                left,
                right,
                TimingCondition(within(1, 5), 0.9),
                by="k",
                report=report,
                options=given,
            )
            assert found.collect() == []
        with told(NoPairsWarning) as texts:
            assert report.summary().no_pairs is not None
        assert "the sides share 50 keys (k)" in texts[0]
        assert report.summary() is report.summary()


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    for name, shift in (("left", 0), ("right", 1)):
        pq.write_table(events(shift), tmp_path / f"{name}.parquet", row_group_size=500)
    return str(tmp_path / "left.parquet"), str(tmp_path / "right.parquet")


@pytest.mark.spark
@pytest.mark.parametrize("way", ["files", "broadcast", "exchange"])
def test_files_into_files(
    spark: SparkSession, paths: tuple[str, str], tmp_path: Path, way: Any
) -> None:
    report = JoinReport()
    with told(*BOTH, *BOTH):
        done = correlate_files(
            spark,
            *paths,
            CONDITION,
            output=tmp_path / "out",
            options=replace(DROP, way=way),
            report=report,
        )
    assert (done.left, done.right) == (COUNTS, COUNTS)
    told_ = report.summary()
    assert (told_.left, told_.right, told_.way) == (COUNTS, COUNTS, way)
    assert told_.counters == done.counters
    with told(*BOTH, *BOTH):
        out = tmp_path / "anti"
        correlate_files(spark, *paths, NONE, output=out, how="anti", options=replace(DROP, way=way))
    with told(*BOTH, *BOTH, NoPairsWarning) as texts:
        done = correlate_files(
            spark, *paths, NONE, output=tmp_path / "none", options=replace(DROP, way=way)
        )
    assert done.no_pairs is not None
    assert "times: left 40 to 29990" in texts[-1].replace(",", "")


@pytest.mark.spark
@pytest.mark.parametrize("slices", [1, 4])
def test_files_as_a_dataframe(spark: SparkSession, paths: tuple[str, str], slices: int) -> None:
    report = JoinReport()
    options = CorrelateOptions(invalid="drop", slices=slices)
    with told():
        found = correlate_files(
            spark,
            *paths,
            CONDITION,
            options=replace(options, way="files"),
            report=report,
            probability=True,
        )
    assert report.left is None
    assert found.columns == ["left_id", "right_id", "probability"]
    assert len(found.collect()) == N - 4
    with told(*BOTH, *BOTH):
        done = report.summary()
    assert (done.left, done.right, done.way) == (COUNTS, COUNTS, "files")
    assert done.counters is not None
    assert done.counters.pairs == N - 4
    # Without a report there is no count; who drops rows learns so.
    with told(DroppedRowsWarning) as texts:
        correlate_files(spark, *paths, CONDITION, options=replace(options, way="files"))
    assert "give report=JoinReport()" in texts[0]


@pytest.mark.spark
def test_rounding_on_every_way(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"t": [1.0000004, 2.0, 3.0], "id": [0, 1, 2]})
    path = str(tmp_path / "floats.parquet")
    pq.write_table(table, path)
    given: dict[str, Any] = {"left_time": "t", "right_time": "t"}
    condition = TimingCondition(within("0s", "1s"), 1.0)
    options = CorrelateOptions(unit="s", tick="us")
    for way in ("files", "exchange"):
        report = JoinReport()
        found = correlate_files(
            spark, path, path, condition, options=replace(options, way=way), report=report, **given
        )
        found.collect()
        done = report.summary()
        assert done.left is not None
        assert done.left.rounded == pytest.approx(0.4, rel=1e-6)
        assert done.tick.unit == "us"


# --- events that no match can be as long as ---

POLLED = TimingCondition(within("0s", "5s"), 0.5)
TAPS = pa.table({"t": [0, 100_000, 200_000, 300_000, 400_000], "id": range(5)})
POLLS = pa.table({
    "after": [0, 98_000, 200_000, None, 390_000], "by": [10_000, 108_001, 209_000, 1, 420_000],
    "id": range(5),
})  # fmt: skip
POLLED_TIMES: dict[str, Any] = {"left_time": "t", "right_time": ("after", "by")}
OF_POLLS = SideCounts(5, 1, too_long=2, longest_match=10_000)
MILLISECONDS = CorrelateOptions(unit="ms")
TOO_LONG = (
    "right, 5 rows: 2 (40 %) longer than any match can be with this window and confidence (longest that"
    " can match: 10 s). Lower the confidence, or widen the window."
)


def test_what_is_longer_than_any_match_is_told() -> None:
    given: dict[str, Any] = {"options": MILLISECONDS, "report": JoinReport()}
    with told(UnmatchableRowsWarning, UnmatchableRowsWarning) as texts:
        correlate_tables(TAPS, POLLS, POLLED, **POLLED_TIMES, **given)
    assert texts[1] == TOO_LONG
    done = given["report"].summary()
    assert (done.left, done.right) == (SideCounts(5), OF_POLLS)
    assert "2 (40 %) longer than any match can be" in dict(done.lines)["right"]
    mirrored = TimingCondition(within("-5s", "0s"), 0.5)
    swapped = {"left_time": ("after", "by"), "right_time": "t"}
    with told(UnmatchableRowsWarning, UnmatchableRowsWarning) as texts:
        correlate_tables(POLLS, TAPS, mirrored, **swapped, **given)  # type: ignore[arg-type]
    assert texts[1] == TOO_LONG.replace("right", "left")
    assert given["report"].summary().left == OF_POLLS
    lower = TimingCondition(within("0s", "5s"), 0.1)
    with told(UnmatchableRowsWarning):
        correlate_tables(TAPS, POLLS, lower, **POLLED_TIMES, **given)
    with told(UnmatchableRowsWarning, NoPairsWarning):  # which says the same of all pairs
        correlate_tables(TAPS, POLLS.slice(3), POLLED, **POLLED_TIMES, **given)


def test_how_long_a_match_can_be_depends_on_the_other_side() -> None:
    report, condition = JoinReport(), TimingCondition(within("0s", "5s"), 0.9)
    polls = POLLS.set_column(1, "by", pa.array([5_400, 98_000, 200_000, 1, 390_000]))
    given: dict[str, Any] = {
        "options": MILLISECONDS,
        "report": report,
        "right_time": ("after", "by"),
    }
    correlate_tables(TAPS, polls, condition, left_time="t", **given)
    assert report.summary().right == SideCounts(5, 1)
    correlate_tables(TAPS, polls, condition, left_time=around("t", "1s"), **given)
    found = report.summary().right
    assert found is not None
    assert (found.too_long, found.longest_match) == (1, 5_000)


def test_one_stream_and_files_tell_what_is_too_long(tmp_path: Path) -> None:
    report = JoinReport()
    given: dict[str, Any] = {"options": MILLISECONDS, "report": report}
    correlate_tables(POLLS, None, POLLED, left_time=("after", "by"), **given)
    assert report.summary().left == OF_POLLS
    paths = []
    for name, table in (("left", TAPS), ("right", POLLS)):
        paths.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(table, paths[-1], row_group_size=2)
    options = replace(MILLISECONDS, slices=2)
    arguments = JoinArguments(POLLED, **POLLED_TIMES, options=options)
    join = LocalFilesJoin(paths[0], paths[1], arguments)
    pairs = sum(batch.num_rows for batch in join.batches())
    assert join.summary is not None
    assert pairs == 2
    assert (join.summary.left, join.summary.right) == (SideCounts(5), OF_POLLS)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_streams_of_tables_tell_what_is_too_long(size: int) -> None:
    """The counts of the join, and once a side a warning."""
    given: dict[str, Any] = {"options": MILLISECONDS, "left_delay": "1h", "right_delay": "1h"}
    stream = stream_tables(POLLED, **POLLED_TIMES, **given)
    polls = POLLS.take(pa.array([0, 2, 1, 4, 3]))
    assert stream.push("left", TAPS).num_rows == 0
    with told(UnmatchableRowsWarning) as texts:
        for start in range(0, 5, size):
            stream.push("right", polls.slice(start, size))
    assert " longer than any match can be with this window and confidence" in texts[0]
    stream.flush()
    assert (stream.summary().left, stream.summary().right) == (SideCounts(5), OF_POLLS)


@pytest.mark.spark
def test_streams_on_spark_tell_what_is_too_long(spark: SparkSession, tmp_path: Path) -> None:
    for name, value in STATE_STORE.items():
        spark.conf.set(name, value)
    kind = pa.timestamp("ms", "UTC")
    tables = TAPS, POLLS
    frames = []
    for number, table in enumerate(tables):
        for name in set(table.column_names) - {"id"}:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.int64()).cast(kind))
        columns = ", ".join(
            f"{n} {'bigint' if n == 'id' else 'timestamp'}" for n in table.column_names
        )
        folder = write_files(tmp_path / str(number), [table])
        frames.append(stream_of(spark, folder, columns))
    joined = correlate_streams(
        *frames, POLLED, **POLLED_TIMES, left_delay="1s", right_delay="1s", name="polled"
    )
    _, progress = streamed(joined, "polled")
    metrics = [each["observedMetrics"] for each in progress]
    assert sum(each["polled_right"]["too_long"] for each in metrics) == OF_POLLS.too_long
    assert not any("too_long" in each["polled_left"] for each in metrics)  # instants never are


@pytest.mark.spark
@pytest.mark.parametrize("way", ["broadcast", "broadcast-both", "exchange", "broadcast-left"])
def test_every_way_tells_what_is_too_long(spark: SparkSession, way: Any) -> None:
    report = JoinReport()
    # Lengths that are declared leave no reason for a planning job.
    longest = {"right_longest": "60s"} if way == "broadcast-left" else {}
    options = replace(MILLISECONDS, way=way, **longest)
    found = correlate(
        frame(spark, TAPS), frame(spark, POLLS), POLLED, options=options, report=report,
        **POLLED_TIMES,
    )  # fmt: skip
    assert found.count() == 2
    done = report.summary()
    assert (done.left, done.right) == (SideCounts(5), OF_POLLS)


@pytest.mark.spark
def test_files_on_spark_tell_what_is_too_long(spark: SparkSession, tmp_path: Path) -> None:
    paths = []
    for name, table in (("left", TAPS), ("right", POLLS)):
        paths.append(str(tmp_path / f"{name}.parquet"))
        pq.write_table(table, paths[-1], row_group_size=2)
    report = JoinReport()
    options = replace(MILLISECONDS, way="files", slices=2)
    given: dict[str, Any] = {"options": options, "report": report, **POLLED_TIMES}
    assert correlate_files(spark, paths[0], paths[1], POLLED, **given).count() == 2
    assert report.summary().right == OF_POLLS
    correlate_files(
        spark, paths[0], paths[1], POLLED, output=str(tmp_path / "pairs.parquet"), **given
    )
    assert report.summary().right == OF_POLLS
