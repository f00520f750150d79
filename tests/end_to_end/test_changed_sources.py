"""Sources that give other rows to the join than to the planning job before it: the right answer or
an error."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from coincide import CorrelateOptions, TimingCondition, correlate, correlate_tables, within
from spark_plugin.tasks.slice_plan import SlicePlan
from tests.helpers.joins import plan_correlation
from tests.helpers.rows import tuples
from tests.helpers.spark_cases import frame, pair_ids

pytestmark = pytest.mark.spark
CONDITION = TimingCondition(within(-40, 60), 0.5)
EXCHANGE = CorrelateOptions(slices=6, way="exchange")


def stream(seed: int, n: int = 600, longest: int = 30) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 20_000, n)
    high = low + rng.integers(0, longest, n)
    return pa.table({"min_time": low, "max_time": high, "id": np.arange(n)})


def pairs_of(left: pa.Table, right: pa.Table) -> list[tuple[int, int]]:
    return sorted(tuples(correlate_tables(left, right, CONDITION)))


class Changing:
    """A DataFrame that gives what is in a file whenever it is computed."""

    def __init__(self, spark: SparkSession, path: Path, table: pa.Table) -> None:
        self._path = str(path)
        self.becomes(table)
        given = self._path

        def rows(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from pq.read_table(given).to_batches()

        schema = "min_time bigint, max_time bigint, id bigint"
        self.frame: DataFrame = spark.range(0, 1, 1, 1).mapInArrow(rows, schema)

    def becomes(self, table: pa.Table) -> None:
        pq.write_table(table, self._path)


@pytest.mark.parametrize(
    ("side", "longest"),
    [
        ("left", 2000),
        ("right", 3),
        pytest.param("right", 2000, marks=pytest.mark.slow),
        pytest.param("left", 3, marks=pytest.mark.slow),
    ],
)
def test_other_lengths_than_the_look_saw(
    spark: SparkSession, tmp_path: Path, side: str, longest: int
) -> None:
    before, after = stream(1), stream(1, longest=longest)
    if longest == 3:
        before = before.set_column(1, "max_time", pa.array(before["min_time"].to_numpy() + 900))
    source = Changing(spark, tmp_path / "rows.parquet", before)
    other = frame(spark, stream(2))
    sides = (source.frame, other) if side == "left" else (other, source.frame)
    found = correlate(*sides, CONDITION, options=EXCHANGE)
    source.becomes(after)
    words = f"{side}: a timestamp is .* ticks, and none was when .* declare .*{side}_longest"
    with pytest.raises(PySparkException, match=words):
        found.count()


def test_declared_lengths_are_planned_for(spark: SparkSession, tmp_path: Path) -> None:
    sources = [Changing(spark, tmp_path / f"{i}.parquet", stream(i)) for i in (1, 2)]
    options = CorrelateOptions(slices=6, way="exchange", left_longest=2000, right_longest=2000)
    found = correlate(*(each.frame for each in sources), CONDITION, options=options)
    after = [stream(i, longest=2000) for i in (1, 2)]
    for source, table in zip(sources, after, strict=True):
        source.becomes(table)
    assert pair_ids(found) == pairs_of(*after)


def test_rows_of_other_times(spark: SparkSession, tmp_path: Path) -> None:
    """The planning job only steers the cuts: rows that come and go cost no pair."""
    left, right = (Changing(spark, tmp_path / f"{i}.parquet", stream(i)) for i in (1, 2))
    found = correlate(left.frame, right.frame, CONDITION, options=EXCHANGE)
    after = [
        stream(seed, n).set_column(2, "id", pa.array(np.arange(n) + seed * 10**6))
        for seed, n in ((3, 900), (4, 300))
    ]
    # As long as the events that were seen.
    ends = [stream(i) for i in (1, 2)]
    for source, table, seen in zip((left, right), after, ends, strict=True):
        lengths = seen["max_time"].to_numpy() - seen["min_time"].to_numpy()
        low = table["min_time"].to_numpy() + 5000
        clipped = np.resize(lengths, low.size)
        source.becomes(pa.table({"min_time": low, "max_time": low + clipped, "id": table["id"]}))
    tables = [pq.read_table(tmp_path / f"{i}.parquet") for i in (1, 2)]
    assert pair_ids(found) == pairs_of(*tables)


@pytest.mark.parametrize(
    ("side", "way", "how"),
    [
        ("right", "exchange", "left"),
        ("left", "broadcast-right", "left"),
        pytest.param("left", "exchange", "inner", marks=pytest.mark.slow),
        pytest.param("right", "broadcast-left", "inner", marks=pytest.mark.slow),
    ],
)
def test_rows_that_have_become_invalid(
    spark: SparkSession, tmp_path: Path, side: str, way: Any, how: Any
) -> None:
    good = stream(1, 50)
    source = Changing(spark, tmp_path / "rows.parquet", good)
    other = frame(spark, stream(2, 50))
    sides = (source.frame, other) if side == "left" else (other, source.frame)
    found = correlate(*sides, CONDITION, how=how, options=CorrelateOptions(way=way))
    wrong = pa.table({"min_time": [9], "max_time": [8], "id": [7]})
    source.becomes(pa.concat_tables([good, wrong]))
    with pytest.raises(
        PySparkException, match=f"{side}: min above max in min_time and max_time of a"
    ):
        found.count()


def test_open_events_end_now(spark: SparkSession) -> None:
    """Each query has its own now: the join's events are longer than the planning job measured."""
    now = datetime.datetime.now(datetime.UTC)
    starts = [now - datetime.timedelta(seconds=i) for i in range(400)]
    right = frame(
        spark, pa.table({"id": range(400), "t": pa.array(starts, pa.timestamp("us", "UTC"))})
    )
    left = right.selectExpr("id", "t AS min_time", "current_timestamp() AS max_time")
    given: dict[str, Any] = {
        "condition": TimingCondition(within("-1d", "1d"), 0.9), "right_time": "t", "emit": "counts",
    }  # fmt: skip
    with pytest.raises(PySparkException, match=r"left: a timestamp is longer .*left_longest"):
        correlate(left, right, **given, options=EXCHANGE).count()
    options = CorrelateOptions(slices=6, way="exchange", left_longest="1h")
    found = correlate(left, right, **given, options=options).collect()
    assert [row["matches"] for row in found] == [400] * 400


@pytest.mark.parametrize("random", ["left", "right"])
def test_times_drawn_anew_for_each_query(spark: SparkSession, random: str) -> None:
    """Every time that can be drawn has the same number of matches."""
    drawn = spark.range(3000).selectExpr(
        "id", "CAST(floor(rand() * 1000) AS BIGINT) * 100 + 50 AS t"
    )
    grid = spark.range(10 * 1000).selectExpr("id", "(id % 1000) * 100 + 50 AS t")
    sides = (drawn, grid) if random == "left" else (grid, drawn)
    found = correlate(
        *sides,
        TimingCondition(within(-20, 20), 0.5),
        left_time="t",
        right_time="t",
        options=EXCHANGE,
    )
    assert found.count() == 30_000


# --- what the plan takes for granted about partitions ---


def labels_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = partial(np.arange, dtype=np.int64)
    monkeypatch.setattr("spark_plugin.ways.exchange.join.partition_labels", numbers)


@pytest.mark.parametrize("how", ["inner", "anti", "left"])
def test_slices_that_meet_in_one_partition(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    """Another hash than the one that labels are made for brings slices together."""
    sides = [stream(seed) for seed in (1, 2)]
    null = pa.table(
        {"min_time": pa.array([None, 3]), "max_time": [5, None], "id": [10**6, 10**6 + 1]}
    )
    left = pa.concat_tables([sides[0], null.cast(sides[0].schema)])
    expected = correlate_tables(left, sides[1], CONDITION, how=how)
    labels_are_numbers(monkeypatch)
    found = correlate(
        frame(spark, left), frame(spark, sides[1]), CONDITION, how=how, options=EXCHANGE
    )
    names = expected.column_names
    assert sorted(found.toArrow().select(names).to_pylist(), key=repr) == sorted(
        expected.to_pylist(), key=repr
    )


@pytest.mark.parametrize("emit", ["pairs", "counts", "lists", "best"])
def test_small_slices_that_meet_in_one_partition(
    spark: SparkSession,
    small_slices: None,
    monkeypatch: pytest.MonkeyPatch,
    emit: Any,
) -> None:
    """Left events that match nothing are reported once, wherever they come."""
    sides = [stream(seed).slice(0, 30) for seed in (1, 2)]
    null = pa.table({"min_time": pa.array([None]), "max_time": [5], "id": [10**6]})
    left = pa.concat_tables([sides[0], null.cast(sides[0].schema)])
    expected = correlate_tables(left, sides[1], CONDITION, how="left", emit=emit)
    labels_are_numbers(monkeypatch)
    options = CorrelateOptions(slice_rows=8, way="exchange")
    planned = plan_correlation(
        frame(spark, left),
        frame(spark, sides[1]),
        CONDITION,
        how="left",
        emit=emit,
        options=options,
    )
    assert isinstance(planned.plan, SlicePlan)
    assert planned.plan.count > 4
    rows = planned.dataframe.toArrow().to_pylist(), expected.to_pylist()
    for row in (row for table in rows for row in table if emit == "lists"):
        row["right_id"].sort()
    assert sorted(rows[0], key=repr) == sorted(rows[1], key=repr)


# --- no expression may overflow, in whatever order Spark evaluates conditions ---


@pytest.mark.parametrize("invalid", ["drop", "raise"])
@pytest.mark.parametrize("way", ["exchange", "broadcast-right"])
def test_what_is_no_time_beside_a_declared_length(
    spark: SparkSession, invalid: Any, way: Any
) -> None:
    wrong = [
        (float("nan"), 1.0), (1.0, float("inf")), (float("-inf"), float("inf")), (-1e300, 1e300),
        (1e300, -1e300), (float("-inf"), 2.0),
    ]  # fmt: skip
    times = [(0.0, 5.0), (100.0, 105.0), *wrong]
    left = pa.table(
        {
            "min_time": [low for low, _ in times],
            "max_time": [high for _, high in times],
            "id": range(len(times)),
        }
    )
    options = CorrelateOptions(
        unit="us", left_longest="1s", right_longest="1s", invalid=invalid, way=way,
        slices=None if way == "broadcast-right" else 3,
    )  # fmt: skip
    assert spark.conf.get("spark.sql.ansi.enabled") == "true"
    condition = TimingCondition(within("-40us", "60us"), 0.5)
    if invalid == "raise":
        with pytest.raises(Exception, match=r"left: (NaN or infinity in|times that reach)"):
            correlate(
                frame(spark, left), frame(spark, left.slice(0, 2)), condition, options=options
            ).count()
        return
    found = correlate(
        frame(spark, left), frame(spark, left.slice(0, 2)), condition, options=options
    )
    assert pair_ids(found) == [(0, 0), (1, 1)]


def test_integers_at_their_ends_beside_a_declared_length(spark: SparkSession) -> None:
    most = 2**63 - 1
    left = pa.table(
        {"min_time": [0, -most - 1, most, 2**62], "max_time": [5, most, -most - 1, 2**62], "id": range(4)}
    )  # fmt: skip
    options = CorrelateOptions(left_longest=10, right_longest=10, invalid="drop", slices=3)
    found = correlate(
        frame(spark, left), frame(spark, left.slice(0, 1)), CONDITION, options=options
    )
    assert pair_ids(found) == [(0, 0)]
