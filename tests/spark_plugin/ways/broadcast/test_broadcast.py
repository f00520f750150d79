"""A side that goes to every worker: which one, bad input, types, and what travels."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import (
    CorrelateOptions,
    TimingCondition,
    Window,
    correlate,
    correlate_tables,
    within,
)
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.files.planning import NotDirect
from coincide.model.counters import JoinCounters
from coincide.model.errors import ConditionError
from coincide.model.options import Way
from coincide.model.probability import distance_from_middle
from coincide.model.timestamps import IntervalPairs
from spark_plugin.tasks import broadcast as broadcast_task
from spark_plugin.tasks.broadcast import SmallSide, sorted_table
from spark_plugin.tasks.wire import UNMATCHED, Shipment, WireLayout
from spark_plugin.ways.correlation import Correlation
from tests.helpers.interval_sides import interval_side
from tests.helpers.joins import join_files, plan_correlation
from tests.helpers.spark_cases import frame, jobs, pair_ids, rows_of, settings

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-40, 60), 0.5)
SIDES = ["left", "right"]


def planned(left: DataFrame, right: DataFrame, side: str, **arguments: Any) -> Correlation:
    way = "broadcast" if side == "smaller" else f"broadcast-{side}"
    options = CorrelateOptions(way=way, **arguments.pop("options", {}))
    condition = arguments.pop("condition", CONDITION)
    found = plan_correlation(left, right, condition, observe=True, options=options, **arguments)
    assert (found.plan.way, found.plan.count, found.plan.replication) == ("broadcast", None, None)
    return found


# --- many events ---


@pytest.mark.seismic
@pytest.mark.parametrize(
    ("side", "emit"),
    [("right", "pairs"), ("left", "counts"),
     *(pytest.param(*case, marks=pytest.mark.slow) for case in (("left", "pairs"), ("right", "counts")))],
)  # fmt: skip
def test_seismic_picks(
    compiled_spark: SparkSession, seismic_frames: tuple[DataFrame, DataFrame], side: str, emit: str
) -> None:
    compiled_spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
    condition = TimingCondition(within("-250ms", "250ms"), 0.5)
    by = ["station", "phase"]
    found = planned(*seismic_frames, side, condition=condition, by=by, emit=emit).dataframe
    if emit == "counts":
        found = found.select(F.sum("matches"))
        assert found.collect() == [(40_518,)]
    else:
        assert found.count() == 40_518


# --- what is chosen ---


def stream(seed: int, n: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 6000, n))
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200], n), "id": np.arange(n) + 1,
        "word": [f"{'x' * 50}{i}" for i in range(n)],
        "nested": [[i] for i in range(n)],
    })  # fmt: skip


LEFT, RIGHT = stream(1), stream(2, 500)


def test_a_small_side_is_found_by_its_bytes(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)

    def way(column: str, most: int) -> str:
        options = CorrelateOptions(broadcast_bytes=most)
        found = plan_correlation(
            left, right, CONDITION, emit="best", right_columns=column, left_columns=column,
            options=options,
        )  # fmt: skip
        return getattr(found.plan, "small", found.plan.way)

    # Two times and an id; two times and a string of 51 to 53 bytes.
    assert [way("id", most) for most in (500 * 24 - 1, 500 * 24)] == ["left", "right"]
    word = sum(map(len, RIGHT["word"].to_pylist())) + 16 * 500
    assert [way("word", most) for most in (word - 1, word)] == ["left", "right"]
    assert way("nested", 2**40) == "exchange"
    assert way("id", 0) == "exchange"


def test_the_result_is_the_same_by_any_way(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT).repartition(3)
    expected = correlate_tables(LEFT, RIGHT, CONDITION)
    for way in get_args(Way):
        if way == "files":
            continue
        options = CorrelateOptions(way=way)
        found = plan_correlation(left, right, CONDITION, options=options)
        one_small = {"auto", "broadcast-left", "broadcast-right"}
        assert found.plan.way == ("broadcast" if way in one_small else way)
        assert pair_ids(found.dataframe) == sorted(
            zip(expected["left_id"].to_pylist(), expected["right_id"].to_pylist(), strict=True)
        )


def test_dataframes_are_not_read_directly(spark: SparkSession) -> None:
    left = frame(spark, LEFT)
    with pytest.raises(NotDirect, match="is a DataFrame that does more than read local Parquet"):
        correlate(left, left, CONDITION, options=CorrelateOptions(way="files"))


@pytest.mark.parametrize("wrong", ["both", None, True])
def test_no_such_choice(wrong: Any) -> None:
    with pytest.raises(ConditionError, match="way must be one of auto, files"):
        CorrelateOptions(way=wrong)


@pytest.mark.parametrize("wrong", [-1, 1.5, "10MB", True])
def test_no_such_threshold(wrong: Any) -> None:
    with pytest.raises(ConditionError, match="broadcast_bytes must be an int of at least 0"):
        CorrelateOptions(broadcast_bytes=wrong)


def test_declared_lengths_spare_the_look(spark: SparkSession) -> None:
    """One job collects the small side; nothing else runs before the result is asked for."""
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    longest = {"left_longest": 200, "right_longest": 200}
    with jobs(spark, "declared") as ran:
        join = planned(left, right, "right", options=longest)
    assert len(ran) == 1
    assert (join.left, join.right) == (None, None)
    assert join.dataframe.count() == correlate_tables(LEFT, RIGHT, CONDITION).num_rows


def test_which_side_is_smaller_takes_a_look(spark: SparkSession) -> None:
    known = {"left_longest": 200, "right_longest": 200}
    join = planned(frame(spark, LEFT), frame(spark, RIGHT), "smaller", options=known)
    assert join.plan.small == "left"
    assert join.left is not None


def test_declared_lengths_are_checked_on_the_way(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    with pytest.raises(PySparkException, match=r"right: timestamps longer than .* of a row"):
        planned(left, right, "right", options={"left_longest": 200, "right_longest": 100})
    join = planned(left, right, "right", options={"left_longest": 100, "right_longest": 200})
    with pytest.raises(PySparkException, match=r"left: timestamps longer than .* of a row"):
        join.dataframe.count()


# --- bad input ---


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("how", "emit", "rows"),
    [("inner", "pairs", 0), ("left", "pairs", 3), ("left", "lists", 3), ("left", "counts", 3),
     ("left", "best", 3), ("anti", "pairs", 3)],
)  # fmt: skip
def test_events_that_match_nothing(
    spark: SparkSession, turned: bool, how: str, emit: str, rows: int
) -> None:
    """Null times, null keys, and no event there to match."""
    sides = itertools.cycle(SIDES[::-1] if turned else SIDES)
    some = frame(spark, pa.table({
        "min_time": pa.array([1, None, 3]), "max_time": pa.array([2, 5, None]),
        "key": pa.array(["a", "a", None]), "id": [1, 2, 3],
    }))  # fmt: skip
    none = some.where("false")
    for right in (some.where("key IS NULL OR min_time IS NULL"), none):
        join = planned(some, right, next(sides), by="key", how=how, emit=emit)
        found = rows_of(join.dataframe)
        assert sorted(row["left_id"] for row in found) == [1, 2, 3][:rows]
        counted = join.counters()
        assert counted is not None
        assert counted.pairs == 0
    join = planned(none, none if turned else some, next(sides), by="key", how=how, emit=emit)
    assert rows_of(join.dataframe) == []
    assert join.counters() == JoinCounters()


@pytest.mark.parametrize("emit", ["counts", "lists", "best"])
def test_counters_do_not_fail_what_needs_no_matches(spark: SparkSession, emit: str) -> None:
    """Spark drops a join whose columns are not used, and what was observed in it."""
    join = planned(frame(spark, LEFT), frame(spark, RIGHT), "left", how="left", emit=emit)
    assert join.dataframe.count() == 300
    assert join.counters() is None


# --- the best match over several tasks ---


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("probability", [False, True])
def test_ties_are_decided_as_in_one_place(spark: SparkSession, how: str, probability: bool) -> None:
    """Equal probabilities, distances, times, and columns with nulls and NaN among them."""
    rng = np.random.default_rng(3)
    n = 240
    low = rng.integers(0, 12, n) * 10
    right = pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 10, 20], n),
        "name": pa.array(rng.choice(["b", "ab", "", "é", None], n)),
        "weight": pa.array(rng.choice([np.nan, -1.0, 0.5, None], n).tolist(), pa.float64()),
        "when": pa.array(rng.integers(-3, 3, n), pa.timestamp("us", "UTC")),
        "id": np.arange(n),
    })  # fmt: skip
    left = pa.table({"min_time": np.arange(0, 140, 10), "max_time": np.arange(0, 140, 10) + 10})
    left = left.append_column("id", pa.array(range(left.num_rows)))
    given = {
        "how": how, "emit": "best", "probability": probability,
        "right_columns": ["name", "weight", "when", "id"],
    }  # fmt: skip
    frames = frame(spark, left), frame(spark, right).repartition(5)
    condition = TimingCondition(within(-15, 15), 0.05)
    found = planned(*frames, "left", condition=condition, **given).dataframe.toArrow()
    expected = correlate_tables(left, right, condition, **given)
    assert expected.num_rows == 14
    assert_same_rows(found, expected)


def assert_same_rows(found: pa.Table, expected: pa.Table) -> None:
    found, expected = (
        table.sort_by("left_id").cast(table.schema).to_pandas() for table in (found, expected)
    )
    assert found.drop(columns="right_when").equals(expected.drop(columns="right_when"))
    assert found["right_when"].astype("int64").equals(expected["right_when"].astype("int64"))


def test_ties_of_collated_texts(spark: SparkSession) -> None:
    """Equal to their collation, they are told apart by their bytes, as in one place."""
    names = spark.sql(
        "SELECT name COLLATE UTF8_LCASE AS name FROM VALUES ('a'), ('B'), ('A'), ('b') AS names(name)"
    )
    # With many keys, so that which partition comes first cannot decide all of them well.
    left = spark.range(20).selectExpr("id", "id AS key", "5 AS min_time", "5 AS max_time")
    right = left.drop("id").crossJoin(names).repartition(4)
    for side in SIDES:
        join = planned(left, right, side, by="key", emit="best", right_columns="name")
        assert [row["right_name"] for row in join.dataframe.collect()] == 20 * ["A"]


def test_distances() -> None:
    rng = np.random.default_rng(4)
    ends = rng.integers(-(2**62) + 1, 2**62, (2, 200))
    lo, hi = -(2**61) + 1, 2**61 - 1
    for low, high in ((lo, hi), (hi, hi), (lo, lo), (-3, 5)):
        found = [int(distance_from_middle(b - a, low, high)) for a, b in ends.T]
        exact = [abs(int(b) - int(a) - low - high) for a, b in ends.T]
        assert found == exact


# --- types, and what travels ---


@pytest.mark.parametrize("emit", ["pairs", "lists", "best"])
def test_columns_of_every_type_come_through(spark: SparkSession, emit: str) -> None:
    left = spark.sql(
        "SELECT id, timestamp_micros(id * 10) AS min_time, timestamp_micros(id * 10 + 5) AS max_time,"
        " CAST(id % 3 AS TINYINT) AS small, id % 2 = 0 AS even, date_add(DATE '2024-02-28', CAST(id AS"
        " INT)) AS day, CAST(id AS DECIMAL(20, 2)) AS amount, CAST(id AS STRING) AS text,"
        " array(id, NULL) AS several, struct(id AS a) AS pair, map('k', id) AS map,"
        " CAST(text AS BINARY) AS bytes, timestamp_ntz '2024-01-01 00:00:00' AS wall,"
        " CAST(NULL AS STRING) AS nothing FROM (SELECT *, CAST(id AS STRING) AS text FROM range(40))"
    )
    names = [
        "small",
        "even",
        "day",
        "amount",
        "text",
        "several",
        "pair",
        "bytes",
        "wall",
        "nothing",
    ]
    condition = TimingCondition(within("-12us", "12us"), 0.5)
    given = {
        "by": "even", "left_columns": ["id", *names], "right_columns": ["id", "min_time", *names],
        "emit": emit, "how": "left", "probability": True,
    }  # fmt: skip
    results = {
        way: plan_correlation(left, left, condition, options=CorrelateOptions(way=way), **given)
        for way in ("broadcast-left", "broadcast-right", "exchange")
    }
    schemas = {way: join.dataframe.schema.simpleString() for way, join in results.items()}
    assert len(set(schemas.values())) == 1
    rows = {way: sorted(map(str, join.dataframe.collect())) for way, join in results.items()}
    assert len(rows["exchange"]) >= 40
    if emit != "lists":
        assert rows["broadcast-left"] == rows["broadcast-right"] == rows["exchange"]
    else:  # the order within lists is not defined
        assert [sorted(row) for row in rows["broadcast-left"]] == [
            sorted(row) for row in rows["exchange"]
        ]


def test_settings_of_the_session(spark: SparkSession) -> None:
    """Types are as ever, and a setting that changes between planning and running does no harm."""
    strings = "spark.sql.legacy.createEmptyCollectionUsingStringType"
    large, ansi = "spark.sql.execution.arrow.useLargeVarTypes", "spark.sql.ansi.enabled"
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    with settings(spark, {strings: "true", ansi: "false"}):
        join = planned(left, right, "left", how="left", emit="lists")
        assert join.dataframe.schema["right_id"].dataType.simpleString() == "array<bigint>"
        assert join.dataframe.count() == 300
    for side in SIDES:
        join = planned(left, right, side, by="word", right_columns=["id", "word"])
        with settings(spark, {large: "true"}):
            assert join.dataframe.count() == correlate_tables(
                LEFT, RIGHT, CONDITION, by="word"
            ).num_rows  # fmt: skip


def test_fields_of_any_name(spark: SparkSession) -> None:
    right = frame(spark, RIGHT).selectExpr(
        "id", "min_time", "max_time", "named_struct('my col', id, 'a.b', word) AS `odd, one`"
    )
    join = planned(frame(spark, LEFT), right, "left", how="left", right_columns=["id", "odd, one"])
    found = join.dataframe.where("right_id IS NOT NULL").toArrow()
    assert [row["my col"] for row in found["right_odd, one"].to_pylist()] == found[
        "right_id"
    ].to_pylist()


def test_a_shipment_needs_no_broadcast() -> None:
    """Without broadcasts, as on Spark Connect, the bytes travel with the function."""
    layout = WireLayout((), ("slot0",), ())
    table = pa.table({
        "max_time": [50, 0, 10, 30], "coded": [0, UNMATCHED, 0, 0], "slot0": ["c", "d", "a", "b"],
    })  # fmt: skip
    table = sorted_table(table, layout, "left", INTERVALS)
    assert table["slot0"].to_pylist() == ["a", "b", "c", "d"]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    shipment = Shipment(sink.getvalue().to_pybytes())
    small = SmallSide(shipment.table(), layout, "left", INTERVALS)
    shipment.close()
    assert len(small) == 4

    def near(*times: int, lo: int = -10, hi: int = 10) -> list[str]:
        streamed = interval_side(times, times)
        side, rows = small.near(streamed, IntervalPairs(Window(lo, hi, 0.5)))
        assert side.payload[0].to_pylist() == table["slot0"].take(pa.array(rows)).to_pylist()
        return side.payload[0].to_pylist()

    assert near(0) == near(20 - 1) == ["a"]
    assert near(20) == near(12, 25) == ["a", "b"]
    assert near(0, 100) == ["a", "b", "c"]
    assert near(60) == ["c"]
    assert near(61) == near(-1) == near() == []
    assert near(20, lo=0) == ["a"]
    assert near(20, lo=-10, hi=-1) == ["b"]


def test_what_was_broadcast_can_be_let_go(spark: SparkSession) -> None:
    join = planned(frame(spark, LEFT), frame(spark, RIGHT), "right")
    assert join.shipment is not None
    file = Path(join.shipment.content._path)
    assert file.stat().st_size > 500 * 24
    join.close()
    assert not file.exists()
    plan_correlation(
        frame(spark, LEFT), frame(spark, RIGHT), CONDITION,
        options=CorrelateOptions(way="exchange"),
    ).close()  # fmt: skip


def test_chunks_end_with_batches() -> None:
    batches = [pa.record_batch({"n": range(n)}) for n in (2, 2, 5, 1)]
    found = [table.num_rows for table in broadcast_task.chunks(batches, 4, 10**6)]
    assert found == [4, 5, 1]
    batches = [pa.record_batch({"n": range(n)}) for n in (2, 2, 1, 2, 2)]
    assert [table.num_rows for table in broadcast_task.chunks(batches, 4, 10**6)] == [4, 5]
    assert [table.num_rows for table in broadcast_task.chunks(batches, 9, 20)] == [4, 3, 2]
    assert list(broadcast_task.chunks([], 4, 10**6)) == []


# --- by files ---


def test_files_say_which_way_they_went(spark: SparkSession, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in SIDES]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        pq.write_table(table.drop_columns(["nested"]), path)
    expected = correlate_tables(LEFT, RIGHT, CONDITION).num_rows
    for way in ("broadcast", "exchange"):
        out = tmp_path / way
        done = join_files(spark, *paths, CONDITION, output=out, way=way)
        assert (done.way, done.rows) == (way, expected)
        assert done.counters is not None
        assert done.counters.pairs == expected
        assert pq.read_table(out).num_rows == expected
        assert (done.slices is None) == (way == "broadcast")
