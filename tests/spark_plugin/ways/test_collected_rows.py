"""What the driver takes at most, whatever Spark has taken the rows for."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions, TimingCondition, correlate_tables, within
from coincide.model.options import Way
from spark_plugin.frames.plain_reads import NO_MORE_ROWS, is_made_of, plan_of
from spark_plugin.ways import choosing
from spark_plugin.ways.broadcast import collecting
from spark_plugin.ways.broadcast.collecting import (
    Wanted,
    collected_rows,
    counted,
    must_be_counted,
)
from tests.helpers.joins import plan_correlation
from tests.helpers.spark_cases import frame, pair_ids

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-4, 6), 0.5)


def stream(words: list[str]) -> pa.Table:
    times = list(range(0, 10 * len(words), 10))
    return pa.table({
        "min_time": times, "max_time": [t + 2 for t in times], "id": range(len(words)), "word": words,
        "nested": [[word] for word in words],
    })  # fmt: skip


WORDS = stream(["word"] * 400)
ONE_LONG = stream([*["word"] * 399, "w" * 2000])
OTHERS = stream(["other"] * 200)


def test_each_partition_stops(spark: SparkSession) -> None:
    found = collected_rows(Wanted(frame(spark, WORDS).repartition(2), ["id"]), (1 << 20, 100))
    assert found is not None
    assert 101 < found.num_rows <= 2 * 101


@pytest.mark.parametrize("partitions", [1, 3])
def test_long_texts_stay_where_they_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    seen: list[pa.Table] = []

    def taken(asked: DataFrame) -> pa.Table:
        seen.append(asked.toArrow())
        return seen[-1]

    monkeypatch.setattr(collecting, "_arrow", taken)
    long = frame(spark, stream(["w" * 1000] * 300)).repartition(partitions)
    assert collected_rows(Wanted(long, ["id", "word"]), (20_000, 1000)) is None
    came = pa.compute.sum(pa.compute.binary_length(seen[0].column("word"))).as_py()
    assert 20_000 <= came <= partitions * 21_000
    assert seen[0].num_rows == 300


def test_texts_come_as_they_are(spark: SparkSession) -> None:
    words = ["", "w", "ö" * 9, None, "w" * 50] * 20
    table = pa.table({"word": words, "word_": range(100), "text": words[::-1]})
    for most in ((10_000, 1000), None):
        found = collected_rows(
            Wanted(frame(spark, table).coalesce(1), ["text", "word", "word_"]), most
        )
        assert found is not None
        assert found.select(table.column_names).to_pydict() == table.to_pydict()
        assert len(found.column_names) == 3


def test_a_long_text_at_the_end_is_counted_and_collected(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the last one all would be 800 kB; they are about 25."""
    asked: list[Wanted] = []
    monkeypatch.setattr(collecting, "counted", lambda each: asked.append(each) or counted(each))
    left, right = frame(spark, ONE_LONG).coalesce(1), frame(spark, OTHERS)
    options = CorrelateOptions(slice_bytes=100_000)
    join = plan_correlation(left, right, CONDITION, left_columns=("id", "word"), options=options)
    assert (join.plan.way, len(asked)) == ("broadcast-both", 2)
    expected = correlate_tables(ONE_LONG, OTHERS, CONDITION)
    ids = zip(expected["left_id"].to_pylist(), expected["right_id"].to_pylist(), strict=True)
    assert pair_ids(join.dataframe) == sorted(ids)
    assert {row["left_word"] for row in join.dataframe.collect()} == {"word"}


MAKES: dict[str, tuple[Callable[[DataFrame], DataFrame], bool]] = {
    "select": (lambda f: f.select(F.col("id").alias("id"), "word"), False),
    "filter": (lambda f: f.where("id > 3").orderBy("id").repartition(3), False),
    "union": (lambda f: f.union(f).limit(7), False),
    "aggregate": (lambda f: f.groupBy("id").agg(F.max("word").alias("word")), False),
    "udf": (lambda f: f.withColumn("id", F.udf(lambda i: i + 1, "long")("id")), False),
    "arrow udf": (lambda f: f.withColumn("id", F.udf(lambda i: i + 1, "long", useArrow=True)("id")), False),
    "window": (lambda f: f.withColumn("id", F.expr("lag(id) OVER (ORDER BY id)")), False),
    "explode": (lambda f: f.withColumn("twice", F.explode(F.sequence(F.lit(1), F.col("id")))), True),
    "join": (lambda f: f.join(f.select("id"), "id"), True),
    "explode of one": (lambda f: f.select("id", "word").union(f.select("id", F.explode("nested"))), True),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKES)
def test_what_makes_rows_is_computed(spark: SparkSession, name: str) -> None:
    made, expected = MAKES[name]
    assert is_made_of(plan_of(made(frame(spark, WORDS))), NO_MORE_ROWS) != expected
    assert must_be_counted(Wanted(frame(spark, WORDS), ["id", "nested"]))
    assert not must_be_counted(Wanted(frame(spark, WORDS), ["id", "word"]))


@pytest.mark.parametrize("most", [(10**6, 300), (10**6, 299), (30_000, 300), (20_000, 300)])
def test_bounds_hold_of_all_rows_that_are_computed(
    spark: SparkSession, most: tuple[int, int]
) -> None:
    """These are 300 texts of 100 bytes, in 30 partitions."""
    table = pa.table({"id": range(300), "word": ["w" * 100] * 300})
    made = Wanted(frame(spark, table).repartition(30), ["id", "word"], is_computed=True)
    found = collected_rows(made, most)
    if most[0] < 30_000:
        assert found is None
        return
    assert found is not None
    assert found.num_rows == most[1] if most[1] == 300 else found.num_rows > most[1]


def test_what_is_counted(spark: SparkSession) -> None:
    table = pa.table({"id": [1, 2, 3], "word": ["äb", None, "c"], "nested": [["x"], [], None]})
    of = {"id": 24, "word": 4, "nested": len('{"nested":["x"]}{"nested":[]}{}')}
    for names in (["id"], ["word"], ["nested"], ["id", "word", "nested"]):
        assert counted(Wanted(frame(spark, table), names)) == (sum(map(of.__getitem__, names)), 3)
    assert counted(Wanted(frame(spark, table.slice(0, 0)), ["id", "word"])) == (0, 0)


def test_what_is_computed_is_collected_up_to_its_bounds(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="coincide")
    many = frame(spark, WORDS).withColumn("copy", F.explode(F.sequence(F.lit(1), F.lit(3))))
    options = CorrelateOptions(slice_rows=1200)
    assert (
        plan_correlation(many, frame(spark, OTHERS), CONDITION, options=options).plan.way
        == "broadcast-both"
    )
    options = CorrelateOptions(slice_rows=1199, way="auto")
    assert (
        plan_correlation(many, frame(spark, OTHERS), CONDITION, options=options).plan.way
        != "broadcast-both"
    )
    assert "left and right were collected without use" in caplog.text


def test_what_spark_takes_for_more_is_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 MiB, as docs/planning.md says: files of few bytes a row may have any number."""
    asked: list[Wanted] = []
    monkeypatch.setattr(collecting, "counted", lambda each: asked.append(each) or counted(each))
    left, right = (frame(spark, table.drop_columns("nested")) for table in (WORDS, OTHERS))
    for size, jobs in ((6 << 20, 0), ((6 << 20) + 1, 2)):
        monkeypatch.setattr(choosing, "estimated_bytes", lambda _, size=size: size)
        assert plan_correlation(left, right, CONDITION).plan.way == "broadcast-both"
        assert len(asked) == jobs


@pytest.mark.parametrize("is_counted", [False, True])
def test_the_bytes_are_those_of_both_sides(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_counted: bool
) -> None:
    """9,600 and 4,800 bytes, with whatever says which are null."""
    monkeypatch.setattr(choosing, "estimated_bytes", lambda _: 0)
    monkeypatch.setattr(collecting, "must_be_counted", lambda _: is_counted)
    left, right = (
        frame(spark, table.select(["min_time", "max_time", "id"])) for table in (WORDS, OTHERS)
    )
    for most, way in ((14_200, "broadcast"), (15_000, "broadcast-both")):
        options = CorrelateOptions(slice_bytes=most)
        assert plan_correlation(left, right, CONDITION, options=options).plan.way == way


@pytest.mark.parametrize(
    ("way", "made"),
    [
        ("auto", lambda f: f.orderBy("id")),
        ("broadcast-both", lambda f: f.where("id >= 0")),
        ("auto", lambda f: f.where(f"id >= (SELECT min(id) FROM parquet.`{f.inputFiles()[0]}`)")),
    ],
)
def test_rows_are_those_of_the_moment(
    spark: SparkSession, tmp_path: Path, way: Way, made: Callable[[DataFrame], DataFrame]
) -> None:
    """Spark would take what it has sorted for an earlier join."""
    path, options = tmp_path / "left.parquet", CorrelateOptions(way=way)
    times = WORDS.select(["min_time", "max_time", "id"])
    right, found = frame(spark, OTHERS), []
    pq.write_table(times, path, compression="none", use_dictionary=False)
    left = made(spark.read.parquet(str(path)))
    for shift in (0, 10):
        moved = [pc.add(times[name], shift) for name in ("min_time", "max_time")]
        table = pa.table([*moved, times["id"]], names=times.column_names)
        pq.write_table(table, path, compression="none", use_dictionary=False)
        join = plan_correlation(left, right, CONDITION, options=options)
        assert join.plan.way == "broadcast-both"
        found.append(pair_ids(join.dataframe))
    assert found == [[(i, i) for i in range(200)], [(i, i + 1) for i in range(199)]]


@pytest.mark.parametrize("most", [None, (1 << 20, 400)])
def test_the_hour_is_that_of_the_moment(
    spark: SparkSession, tmp_path: Path, most: tuple[int, int] | None
) -> None:
    """Spark's optimizer replaces `now()` once a plan."""
    pq.write_table(WORDS.select(["min_time", "max_time", "id"]), tmp_path / "left.parquet")
    left = spark.read.parquet(str(tmp_path / "left.parquet"))
    told = left.selectExpr("unix_micros(now()) AS now")
    asked = [collected_rows(Wanted(told, ["now"]), most) for _ in range(2)]
    first, second = (found["now"][0].as_py() for found in asked if found is not None)
    assert first < second
