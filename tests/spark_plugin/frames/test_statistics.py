"""One job reads both sides: counts, lengths, a sample, and which rows are invalid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions
from coincide.engine.events.intervals import IntervalColumns
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import arrow_time_column
from coincide.engine.events.sides import read_side
from coincide.engine.events.time_columns import resolve_tick, scale_of
from coincide.model.errors import DataError
from spark_plugin.frames.columns import field_of, spark_time_column
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.statistics import (
    _SPREAD,
    _beyond_sample,
    _gathered,
    _spread,
    measure,
    refuse_invalid,
)
from spark_plugin.frames.timestamps import with_timestamps
from tests.helpers.spark_cases import frame, jobs

pytestmark = pytest.mark.spark

TIMES = ("min_time", "max_time")


def events(
    side: str, source: DataFrame, by: list[str] | None = None, longest: int | None = None,
    unit: str | None = None,
) -> EventFrame:  # fmt: skip
    columns = [spark_time_column(side, field_of(source, side, name)) for name in TIMES]
    options = CorrelateOptions(unit=unit)
    tick = resolve_tick(columns, options)
    low, high = (scale_of(column, tick, options) for column in columns)
    times = IntervalColumns((low, high), longest)
    return EventFrame(side, with_timestamps(times, source), times, by or [], [])


def timed(low: Any, high: Any, **more: Any) -> pa.Table:
    return pa.table({"min_time": low, "max_time": high, **more})


def test_few_rows_are_known_whole(spark: SparkSession) -> None:
    rng = np.random.default_rng(1)
    low = rng.integers(-(10**12), 10**12, 300)
    left = timed(low, low + rng.integers(3, 50, 300), k=rng.integers(0, 9, 300))
    right = timed([5], [5], k=[3])
    with jobs(spark, "measure") as ran:
        found, other = measure(
            events("left", frame(spark, left).repartition(2), ["k"]),
            events("right", frame(spark, right), ["k"]),
        )
    # One per exchange, one of them the repartition's, and one that collects.
    assert len(ran) <= 4
    assert found.counts == SideCounts(300, 0, {})
    lengths = left["max_time"].to_numpy() - low
    assert (found.shortest, found.longest) == (lengths.min(), lengths.max())
    doubled = np.sort(2 * low + lengths)
    assert np.array_equal(found.midpoints, doubled)
    assert np.array_equal(found.weights, np.ones(300))
    key_of = dict(zip((2 * low + lengths).tolist(), left["k"].to_pylist(), strict=True))
    hashes = {(key_of[m], h) for m, h in zip(doubled.tolist(), found.hashes.tolist(), strict=True)}
    assert len(hashes) == 9
    assert len({h for _, h in hashes}) == 9
    # The same key has the same hash on the other side.
    assert (3, other.hashes[0]) in hashes
    assert (other.counts.rows, other.matchable, other.midpoints.tolist()) == (1, 1, [10])
    assert (other.shortest, other.longest) == (0, 0)


def test_many_rows_are_sampled_evenly(spark: SparkSession) -> None:
    """Samples represent about as many events as there are, at any time."""
    n = 200_000
    source = spark.range(0, n, 1, 2).select(
        F.col("id").alias("min_time"), (F.col("id") + 10).alias("max_time")
    )
    found, _ = measure(events("left", source), events("right", source.limit(0)))
    assert found.counts.rows == n
    assert found.midpoints.size < n / 20
    assert np.all(np.diff(found.midpoints) >= 0)
    assert found.weights.sum() == n
    for first in range(0, n, n // 4):
        inside = (found.midpoints >= 2 * first) & (found.midpoints < 2 * (first + n // 4))
        assert found.weights[inside].sum() == pytest.approx(n / 4, rel=0.1)


def samples_of(spark: SparkSession, partitions: int, rows: int, of: int = 1) -> pa.Table:
    """The sample that partitions of `rows` rows would give, each `of`-th of them: per partition its
    samples, the rows of the largest weight, and the first sample."""
    made = spark.range(0, partitions // of * rows, 1, 2).selectExpr(
        f"shiftleft(id div {rows} * {of}, 33) + id % {rows} AS number"
    )
    stands = made.selectExpr(f"number - {_beyond_sample('number')} AS sample", "number")
    groups = stands.groupBy("sample").agg(F.count("*").alias("n"), F.min("number").alias("first"))
    assert groups.where("first != sample").isEmpty()
    by_partition = groups.groupBy(F.shiftright("sample", 33).alias("partition"))
    return by_partition.agg(
        F.count("*").alias("samples"), F.sum("n").alias("rows"), F.min("sample").alias("first")
    ).toArrow()


def test_the_sample_of_many_partitions_is_bounded(spark: SparkSession) -> None:
    """Each 25th of 10,000 small ones: without thinning 2,560,000 rows would be collected."""
    found = samples_of(spark, 10_000, 256, of=25)
    samples = found["samples"].to_numpy()
    assert samples.sum() * 25 < 250_000
    assert samples.min() == 16
    assert found["rows"].to_numpy().tolist() == [256] * 400
    assert np.all(found["first"].to_numpy() == found["partition"].to_numpy() << 33)


def test_the_sample_of_large_partitions_grows_slowly_with_their_number(
    compiled_spark: SparkSession,
) -> None:
    """Each 100th of 10,000 partitions of 20,000 rows."""
    found = samples_of(compiled_spark, 10_000, 20_000, of=100).sort_by("partition")
    samples, partitions = found["samples"].to_numpy(), found["partition"].to_numpy()
    few = 256 + (4096 - 256) // 16 + -(-(20_000 - 4096) // 128)
    assert samples[partitions < 128].tolist() == [few] * 2
    assert samples.sum() * 100 < 500_000
    assert samples.sum() * 100 < few * 10_000 / 10
    assert np.all(found["rows"].to_numpy() == 20_000)


def test_groups_of_rows_have_places_of_their_own_in_sparks_fastest_table(
    compiled_spark: SparkSession,
) -> None:
    """Which has 2^17 places, found by a number's last bits, and takes the next one if that is taken."""
    made = compiled_spark.range(0, 2_000_000, 1, 1).selectExpr(
        "3 * shiftleft(1L, 33) + id AS number"
    )
    numbers = made.where(f"{_beyond_sample('number')} = 0")
    codes = numbers.selectExpr("number", f"{_spread('number')} * 2 AS code").toArrow()
    spread = codes["code"].to_numpy() // 2
    assert np.array_equal(_gathered(spread), codes["number"].to_numpy())
    taken: set[int] = set()
    left_out = 0
    for place in (codes["code"].to_numpy() % (1 << 17)).tolist():
        free = next((at for at in (place, place + 1) if at not in taken), None)
        left_out += free is None
        taken.add(place if free is None else free)
    assert len(spread) > 1500
    assert left_out < len(spread) / 100


def test_no_number_is_lost_by_spreading_it() -> None:
    numbers = np.random.default_rng(5).integers(0, 1 << 63, 10_000, dtype=np.int64)
    numbers[:3] = 0, 1, np.iinfo(np.int64).max
    spread = numbers.copy()
    for bit in range(63):  # one bit of the number at a time, by what a shift does to it
        spread ^= ((numbers >> bit) & 1) << (bit - _SPREAD) if bit >= _SPREAD else 0
    assert np.array_equal(_gathered(spread), numbers)


def test_how_long_and_when_invalid_rows_are_tells_nothing(spark: SparkSession) -> None:
    """They may reach further than any other: the wrong way round, without a time, out of range."""
    far = 1 << 60
    left = timed([5, far, -far, 6, None, 7], [9, far - 1, -far - 5, 1 << 62, far, 8])
    sides = [events(side, frame(spark, left)) for side in ("left", "right")]
    found = measure(sides[0], sides[1])[0]
    assert found.counts == SideCounts(6, 1, {"range": 1, "order": 2})
    assert (found.shortest, found.longest, found.first, found.last) == (1, 4, 5, 9)
    only = timed([far], [-far])
    assert measure(sides[0], events("right", frame(spark, only)))[1].longest == 0


def test_rows_whose_sample_is_invalid_are_not_forgotten(spark: SparkSession) -> None:
    source = spark.range(0, 5000, 1, 1).select(
        F.col("id").alias("min_time"),
        F.expr("CASE WHEN id % 32 = 0 THEN id - 1 ELSE id + 1 END").alias("max_time"),
    )
    found, _ = measure(events("left", source), events("right", source.limit(0)))
    assert found.counts.dropped == 157
    assert found.weights.sum() == found.matchable == 5000 - 157
    assert found.midpoints.size > 300


def test_sides_without_rows(spark: SparkSession) -> None:
    none = frame(spark, timed([1], [1])).filter("min_time > 5")
    empty = spark.createDataFrame([], none.schema)
    found = measure(events("left", none), events("right", empty))
    for side in found:
        assert side.counts == SideCounts(0, 0, {})
        assert (side.shortest, side.longest, side.matchable) == (0, 0, 0)
        assert side.midpoints.size == side.weights.size == side.hashes.size == 0
        assert side.midpoints.dtype == side.hashes.dtype == np.int64


INF, NAN = float("inf"), float("nan")

INVALID = {
    "integers": (
        [0, 9, 9, 2**61, -(2**61), 2**61 - 1, -(2**63), 0, None, 2**61, None, 3],
        [0, 8, 7, 2**61, -(2**61), 2**61 - 1, 2**63 - 1, 9, 5, None, None, 2],
        {},
    ),
    "floats": (
        [0.0, NAN, INF, -INF, None, 1.0, 1e300, -3e12, 7.0, 2.0],
        [0.5, 1.0, INF, 9.0, NAN, NAN, 1e300, 4.0, 6.0, None],
        {"unit": "s"},
    ),
    "lengths": ([0, 0, 0, 5, None], [5, 6, 7, 4, 4], {"longest": 5}),
    "lengths and the range": ([-(2**63), 2 - 2**61, 0], [2**63 - 1, 2**61 - 2, 5], {"longest": 5}),
}


@pytest.mark.parametrize("name", INVALID)
def test_rows_are_counted_as_in_a_table(spark: SparkSession, name: str) -> None:
    low, high, settings = INVALID[name]
    table = timed(low, high)
    columns = [arrow_time_column("right", n, table.schema.field(n).type) for n in TIMES]
    options = CorrelateOptions(unit=settings.get("unit"))
    tick = resolve_tick(columns, options)
    low_scale, high_scale = (scale_of(column, tick, options) for column in columns)
    intervals = IntervalColumns((low_scale, high_scale), settings.get("longest"))
    _, expected = read_side(table, intervals, [], [], "drop")
    source = frame(spark, table)
    right = events("right", source, **settings)
    _, found = measure(events("left", source.limit(0)), right) if name != "floats" else (
        measure(events("left", source.limit(0), unit="s"), right)
    )  # fmt: skip
    assert found.counts == expected
    assert expected.invalid
    assert (
        found.matchable
        == found.weights.sum()
        == table.num_rows - expected.dropped - expected.unmatchable
    )
    with pytest.raises(DataError) as caught:
        refuse_invalid([right], [found])
    for count in expected.invalid.values():
        assert f"in {count} row" in str(caught.value)
    assert str(caught.value).count("(found min_time=") == len(expected.invalid)


def test_rows_of_one_stream_have_what_both_roles_hand_out(spark: SparkSession) -> None:
    source = frame(spark, timed([1, 2], [3, 4], word=["x" * 1000] * 2))
    side = replace(events("left", source), identity=["word"])
    assert measure(side, side, is_one_stream=True)[1].row_bytes > 1000


def test_a_null_key_does_not_excuse_an_invalid_time(spark: SparkSession) -> None:
    table = timed([0, 9, 0, 0, None], [0, 8, 2, 50, 5], k=pa.array(["a", None, None, None, None]))
    side = events("left", frame(spark, table), ["k"], longest=10)
    found, _ = measure(side, events("right", frame(spark, table).limit(0), ["k"]))
    assert found.counts == SideCounts(5, 2, {"order": 1, "length": 1})
    with pytest.raises(DataError, match=r"left: min above max .* min_time=9, max_time=8, k=None"):
        refuse_invalid([side], [found])


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_examples_that_python_has_no_date_for(spark: SparkSession, kind: str) -> None:
    source = spark.range(2).select(
        F.expr(f"cast(timestamp_micros({2**61} + 5) as {kind})").alias("min_time"),
        F.expr(f"cast(timestamp_micros({2**61} + 5) as {kind})").alias("max_time"),
        F.lit("two\nlines").alias("k"),
    )
    side = events("left", source, ["k"])
    found, _ = measure(side, events("right", source.limit(0), ["k"]))
    with pytest.raises(DataError, match=r"reach 2\^61 .* in 2 rows .*min_time=\+75039-") as caught:
        refuse_invalid([side], [found])
    assert "\n" not in str(caught.value)
