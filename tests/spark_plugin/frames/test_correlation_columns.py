"""`correlate` on columns of every type: times, keys, payload."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from coincide import CorrelateOptions, TimingCondition, correlate, correlate_tables, within
from tests.helpers.comparison import assert_answer
from tests.helpers.example_streams import CONDITION, LEFT, RIGHT, declared, expected_pairs
from tests.helpers.joins import plan_correlation
from tests.helpers.spark_cases import frame, pair_ids, rows_of, settings
from tests.helpers.strategies import JoinCase

pytestmark = pytest.mark.spark

ZONE = "spark.sql.session.timeZone"

# --- columns of time ---

UTC = dt.UTC
WALL_CLOCKS = {
    # Rome's clocks went back at 3 on the first of these days and forward at 2 on the second.
    "back": [dt.datetime(2016, 10, 30, 1, 50) + dt.timedelta(minutes=3 * i) for i in range(40)],
    "forward": [dt.datetime(2016, 3, 27, 1, 50) + dt.timedelta(minutes=3 * i) for i in range(40)],
    "old": [dt.datetime(1582, 10, 1) + dt.timedelta(minutes=4 * i) for i in range(10)],
    "far": [dt.datetime(9999, 12, 31, 22) + dt.timedelta(minutes=4 * i) for i in range(10)],
}


def clocks(day: str, zone: str | None, shift: int) -> pa.Table:
    starts = [t + dt.timedelta(seconds=shift) for t in WALL_CLOCKS[day]]
    ends = [t + dt.timedelta(seconds=20 * (i % 4)) for i, t in enumerate(starts)]
    kind = pa.timestamp("us", zone)
    if zone:
        starts, ends = ([t.replace(tzinfo=UTC) for t in times] for times in (starts, ends))
    return pa.table({
        "min_time": pa.array(starts, kind), "max_time": pa.array(ends, kind),
        "id": range(len(starts)),
    })  # fmt: skip


@pytest.mark.parametrize(
    ("zone", "session_zones"),
    [(None, ("Europe/Rome", "America/Los_Angeles")), ("UTC", ("Europe/Rome", "UTC", "Asia/Kathmandu"))],
    ids=["timestamp_ntz", "timestamp"],
)  # fmt: skip
def test_timestamps_whatever_the_session_time_zone(
    spark: SparkSession, zone: str | None, session_zones: tuple[str, ...]
) -> None:
    condition = TimingCondition(within("-3min", "200s"), 0.5)
    tables = {day: (clocks(day, zone, 0), clocks(day, zone, 45)) for day in WALL_CLOCKS}
    columns = ["id", "min_time"]
    arguments: dict[str, Any] = {"left_columns": columns, "probability": True}
    # One join of all days: they are far apart.
    left, right = (pa.concat_tables([pair[i] for pair in tables.values()]) for i in (0, 1))
    left, right = (t.set_column(2, "id", pa.array(range(t.num_rows))) for t in (left, right))
    expected = correlate_tables(left, right, condition, **arguments).to_pylist()
    assert len(expected) >= 2 * left.num_rows
    for session_zone in session_zones:
        with settings(spark, {ZONE: session_zone}):
            frames = frame(spark, left), frame(spark, right)
            assert frames[0].dtypes[0][1] == ("timestamp" if zone else "timestamp_ntz")
            options = CorrelateOptions(slices=2)
            found = rows_of(correlate(*frames, condition, **arguments, options=options))
        assert sorted(found, key=str_of) == sorted(expected, key=str_of)


def str_of(row: dict[str, Any]) -> tuple[int, int]:
    return row["left_id"], row["right_id"]


NUMBERS = {
    "tinyint": ("s", 1), "smallint": ("ms", 1), "int": ("min", 1), "bigint": ("ns", 1),
    "float": ("s", 1), "double": ("ms", 0.5),
}  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_with_a_unit(spark: SparkSession, kind: str) -> None:
    unit, scale = NUMBERS[kind]
    times = (
        [(0, 4), (10, 10), (None, 3), (95, 105), (7, 9)],
        [(1, 5), (13, 13), (100, 120), (97, 107)],
    )
    rows = [
        [{"min_time": a, "max_time": b, "id": i} for i, (a, b) in enumerate(side)] for side in times
    ]
    frames = [
        frame(spark, pa.Table.from_pylist(side)).select(
            "id", *((F.col(n) * scale).cast(kind).alias(n) for n in ("min_time", "max_time"))
        )
        for side in rows
    ]
    bound = 4 if scale == 1 else 2
    condition = TimingCondition(within(f"-{bound}{unit}", f"{bound}{unit}"), 0.5)
    options = CorrelateOptions(unit=unit)
    found = correlate(*frames, condition, how="left", probability=True, options=options)
    assert_answer(rows_of(found), JoinCase(*rows, -4, 4, 0.5, ()), "left", "pairs", True)


def test_nanosecond_ticks_for_timestamps(spark: SparkSession) -> None:
    left, right = (frame(spark, clocks("back", "UTC", s)) for s in (0, 45))
    found = correlate(
        left, right, TimingCondition(within("44999999999ns", "45s"), 1.0),
        left_time="min_time", right_time="min_time", options=CorrelateOptions(unit="ns"),
    )  # fmt: skip
    assert pair_ids(found) == [(i, i) for i in range(40)]


def test_fractions_of_seconds_are_rounded_to_the_tick_that_is_named(spark: SparkSession) -> None:
    """To the nearest one: 0.4 us too early is no tick too early."""
    early, exact = (
        pa.table({"t": [1.5 + i * 1e-6 - noise for i in range(10)], "id": range(10)})
        for noise in (4e-7, 0.0)
    )
    found = correlate(
        frame(spark, early), frame(spark, exact), TimingCondition(within(1, 1), 1.0),
        left_time="t", right_time=["t"], options=CorrelateOptions(unit="s", tick="us"),
    )  # fmt: skip
    assert pair_ids(found) == [(i, i + 1) for i in range(9)]


# --- keys ---

KEYS = {
    pa.string(): ["a", "b", "a", None, "", "é"],
    pa.int8(): [1, 2, 1, None, -128, 127],
    pa.int16(): [1, 2, 1, None, -1, 0],
    pa.int32(): [1, 2, 1, None, -1, 0],
    pa.int64(): [2**53, 2**53 + 1, 2**53, None, -1, 0],
    pa.bool_(): [True, False, True, None, None, None],
    pa.binary(): [b"\0", b"\0\0", b"\0", None, b"", b"\xff"],
    pa.date32(): [1, 2, 1, None, -1, 0],
    pa.timestamp("us", "UTC"): [1, 2, 1, None, -1, 0],
    pa.timestamp("us"): [1, 2, 1, None, -1, 0],
    pa.decimal128(20, 2): [Decimal(v) for v in ("1.50", "1.51", "1.50")] + [None, Decimal(0), Decimal(-1)],
    pa.duration("us"): [1, 2, 1, None, -1, 0],
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS, ids=str)
def test_types_of_keys(spark: SparkSession, kind: pa.DataType) -> None:
    keys = pa.array(KEYS[kind], kind)
    table = pa.table({"t": [0] * 6, "id": range(6), "k": keys})
    source = frame(spark, table)
    found = correlate(
        source, source, TimingCondition(within(0, 0), 1.0), left_time="t", right_time="t", by="k",
        how="left", options=declared(),
    )  # fmt: skip
    assert found.schema["k"].dataType == source.schema["k"].dataType
    expected = correlate_tables(
        table, table, TimingCondition(within(0, 0), 1.0), left_time="t", right_time="t", by="k",
        how="left",
    )  # fmt: skip
    assert expected.num_rows >= 7
    rows = rows_of(found)
    assert sorted(rows, key=repr_of) == sorted(expected.to_pylist(), key=repr_of)


def repr_of(row: dict[str, Any]) -> tuple[int, int]:
    return row["left_id"], -1 if row["right_id"] is None else row["right_id"]


# --- payload ---

PAYLOAD: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["a", None, "", "é\n"]),
    "flag": (pa.bool_(), [True, False, None, True]),
    "byte": (pa.int8(), [1, -128, None, 127]),
    "short": (pa.int16(), [None, -(2**15), 2**15 - 1, 0]),
    "int": (pa.int32(), [2**31 - 1, None, -(2**31), 0]),
    "long": (pa.int64(), [2**53 + 1, -(2**63), None, 2**63 - 1]),
    "float": (pa.float32(), [0.5, None, float("inf"), -1.25]),
    "double": (pa.float64(), [0.1, None, float("-inf"), 1e300]),
    "day": (pa.date32(), [dt.date(2016, 10, 30), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "wall": (
        pa.timestamp("us"),
        [dt.datetime(2016, 10, 30, 2, 30), None, dt.datetime(1, 1, 1), dt.datetime(2016, 3, 27, 2, 30)],
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2016, 10, 30, 0, 30, tzinfo=UTC), None, dt.datetime(1600, 1, 1, tzinfo=UTC),
         dt.datetime(2016, 10, 30, 1, 30, 0, 1, tzinfo=UTC)],
    ),
    "money": (pa.decimal128(30, 5), [Decimal("1.50000"), None, Decimal("-1e20"), Decimal(0)]),
    "span": (pa.duration("us"), [dt.timedelta(1), None, dt.timedelta(-1, 5), dt.timedelta(0)]),
    "bytes": (pa.binary(), [b"\0", None, b"", b"\xff"]),
    "list": (pa.list_(pa.int32()), [[1, None], None, [], [2]]),
    "walls": (pa.list_(pa.timestamp("us")), [[dt.datetime(2016, 10, 30, 2, 30), None], None, [], []]),
    "struct": (
        pa.struct({"a": pa.int8(), "b": pa.string()}),
        [{"a": 1, "b": None}, None, {"a": None, "b": "x"}, {"a": 3, "b": "y"}],
    ),
    "map": (pa.map_(pa.string(), pa.int8()), [[("a", 1)], None, [], [("b", None)]]),
}  # fmt: skip


@pytest.mark.parametrize("emit", ["pairs", "lists", "best"])
def test_payload_comes_through(spark: SparkSession, emit: str) -> None:
    """All kinds of column at once, on both sides, in other orders; types are restored."""
    values = {name: pa.array(rows, kind) for name, (kind, rows) in PAYLOAD.items()}
    times = {"t": [0, 100, 200, 300], "id": range(4)}
    table = pa.table({**times, **values})
    source = frame(spark, table)
    names = ["id", *PAYLOAD]
    found = correlate(
        source.repartition(3), source.filter("id != 1"), TimingCondition(within(0, 0), 1.0),
        left_time="t", right_time="t", left_columns=names, right_columns=names[::-1],
        how="left", emit=emit, options=declared(),
    )  # fmt: skip
    for name in PAYLOAD:
        kind = source.schema[name].dataType
        assert found.schema[f"left_{name}"].dataType == kind
        right = found.schema[f"right_{name}"].dataType
        assert (right.elementType if emit == "lists" else right) == kind
    rows = sorted(rows_of(found), key=lambda row: row["left_id"])
    assert len(rows) == 4
    for name in PAYLOAD:
        expected = source.select(name).toArrow()[name].to_pylist()
        assert [row[f"left_{name}"] for row in rows] == expected
        right = [row[f"right_{name}"] for row in rows]
        if emit == "lists":
            assert right == [expected[:1], [], expected[2:3], expected[3:]]
        else:
            assert right == [expected[0], None, *expected[2:]]


@pytest.mark.usefixtures("small_slices")
def test_a_burst_of_columns_without_a_hash(spark: SparkSession) -> None:
    """Left events of a split cell are dealt by a hash, and Spark hashes no maps."""
    source = frame(spark, LEFT).select(
        F.lit(5).alias("t"), F.create_map("key", "id").alias("map"),
        F.array(F.struct(F.create_map("key", "id").alias("deep"))).alias("nested"),
        F.array(F.col("id").cast("string")).alias("words"),
    )  # fmt: skip
    planned = plan_correlation(
        source, source.limit(7), TimingCondition(within(0, 0), 1.0), left_time="t", right_time="t",
        left_columns=["map", "nested", "words"], right_columns="map", how="left",
        options=CorrelateOptions(slices=3),
    )  # fmt: skip
    assert planned.plan.is_split
    words = [row["left_words"][0] for row in rows_of(planned.dataframe)]
    assert sorted(map(int, words)) == sorted(7 * LEFT["id"].to_pylist())


def test_odd_column_names(spark: SparkSession) -> None:
    names = {
        "min_time": "t.min", "max_time": "max time", "id": "id`s.x", "key": "ключ {}",
        "metrics": "metrics", "time": "time", "label": "label",
    }  # fmt: skip
    left, right = (
        t.append_column("metrics", t["id"]).append_column("time", t["id"]).append_column("label", t["id"])
        for t in (LEFT, RIGHT)
    )  # fmt: skip
    left, right = (t.rename_columns([names[n] for n in t.column_names]) for t in (left, right))
    times = ("t.min", "max time")
    arguments: dict[str, Any] = {
        "left_time": times, "right_time": times, "by": ["ключ {}"], "how": "left",
        "left_columns": ["id`s.x", "t.min", "metrics"], "right_columns": ["id`s.x", "time", "label"],
    }  # fmt: skip
    expected = correlate_tables(left, right, CONDITION, **arguments)
    planned = plan_correlation(
        frame(spark, left), frame(spark, right), CONDITION, **arguments, observe=True,
        options=declared(),
    )  # fmt: skip
    found = planned.dataframe.toArrow()
    assert found.column_names == expected.column_names
    order = [(name, "ascending") for name in expected.column_names]
    assert found.sort_by(order).equals(expected.sort_by(order))


def test_a_key_called_metrics(spark: SparkSession) -> None:
    left, right = (
        t.rename_columns(["min_time", "max_time", "id", "metrics"]) for t in (LEFT, RIGHT)
    )
    planned = plan_correlation(
        frame(spark, left), frame(spark, right), CONDITION, by="metrics", observe=True,
        options=declared(),
    )  # fmt: skip
    assert planned.dataframe.columns == ["metrics", "left_id", "right_id"]
    assert pair_ids(planned.dataframe) == expected_pairs(by="key")
    assert planned.counters().pairs == len(expected_pairs(by="key"))


def test_columns_and_their_order(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    found = correlate(
        left, right, CONDITION, by="key", left_columns=("max_time", "id", "key"),
        right_columns="min_time", probability=True, options=declared(),
    )  # fmt: skip
    assert found.dtypes == [
        ("key", "string"), ("left_max_time", "bigint"), ("left_id", "bigint"),
        ("left_key", "string"), ("right_min_time", "bigint"), ("probability", "double"),
    ]  # fmt: skip
    counted = correlate(left, right, CONDITION, left_columns=(), emit="counts", options=declared())
    assert counted.dtypes == [("matches", "bigint")]
    assert counted.groupBy().sum("matches").collect()[0][0] == len(expected_pairs())
    bare = correlate(
        left, right, CONDITION, by="key", left_columns=(), right_columns=(), options=declared()
    )
    assert bare.columns == ["key"]
    assert bare.count() == len(expected_pairs(by="key"))
