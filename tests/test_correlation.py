"""`correlate` on Spark: the reference's answer, whatever the shape, the types and the slices."""

from __future__ import annotations

import datetime as dt
import logging
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from event_model import CorrelateOptions, TimingCondition, deadline, within
from event_model.errors import CoincideError, ConditionError, DataError, SchemaError
from spark_plugin import slices as planner
from spark_plugin.correlation import correlate, plan_correlation
from spark_plugin.worker import TableJoin, correlate_tables
from tests.comparison import HUGE_TOLERANCE, PROBABILITY_TOLERANCE, SHAPES, assert_answer
from tests.spark_cases import frame, jobs, pack, pair_ids, rows_of, settings
from tests.strategies import JoinCase

pytestmark = pytest.mark.spark

BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
ZONE = "spark.sql.session.timeZone"

PLANS = (
    *({"slices": 3}, {"slices": 1}, {}, {"slices": 5, "slice_rows": 5}),
    {"slices": 4, "slice_rows": 5, "max_replication": 1.0},
)
"""Options of the planner that go round with the shapes."""


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells of a few rows count as heavy, so that small data meet key buckets and splits."""
    monkeypatch.setattr(planner, "_SMALLEST_SLICE_WORK", 5.0)


def declared(**more: Any) -> CorrelateOptions:
    """Statistics that spare the look at the data: one Spark job less."""
    known = {"left_longest": 2**50, "right_longest": 2**50, "time_range": (0, 1000), "slices": 2}
    return CorrelateOptions(**known | more)


# --- against the reference ---


@pytest.mark.parametrize("number", range(len(SHAPES)))
@pytest.mark.usefixtures("small_slices")
def test_packs_of_cases(spark: SparkSession, number: int) -> None:
    """Twenty-five adversarial joins a job; keys, plans, classes and batches go round."""
    how, emit, probability = SHAPES[number]
    keys = ((), ("station",), ("station", "channel"))[number % 3]
    cases = pack(2010 + number, 25, keys=keys)
    options = CorrelateOptions(
        **PLANS[number % len(PLANS)],
        classes=(None, 1, 3)[number // 2 % 3],
        batch_pairs=(None, 1, 20)[number // 3 % 3],
    )
    left, right = (frame(spark, table).repartition(2) for table in cases.tables())
    found = correlate(
        left, right, cases.condition, by=cases.by, how=how, emit=emit, probability=probability,
        options=options,
    )  # fmt: skip
    cases.check(rows_of(found), how, emit, probability, PROBABILITY_TOLERANCE)


@pytest.mark.parametrize(("seed", "slices"), [(1, 1), (2, 3), (3, 4)])
@pytest.mark.usefixtures("small_slices")
def test_packs_of_huge_cases(spark: SparkSession, seed: int, slices: int) -> None:
    """Times and bounds up to 2^61: no sum on the way may overflow."""
    cases = pack(seed, 20, huge=True)
    left, right = (frame(spark, table) for table in cases.tables())
    options = CorrelateOptions(slices=slices)
    found = correlate(left, right, cases.condition, by="case", how="left", options=options)
    cases.check(rows_of(found), "left", "pairs", False, HUGE_TOLERANCE)


def test_the_farthest_times_in_several_slices(spark: SparkSession) -> None:
    far = 2**61 - 1
    times = [(-far, -far), (-far, far), (0, 0), (far, far), (-far, 0), (0, far)]
    rows = [{"min_time": a, "max_time": b, "id": i} for i, (a, b) in enumerate(times)]
    source = frame(spark, pa.Table.from_pylist(rows))
    for lo, hi in ((-far, far), (far, far), (-far, 1 - far)):
        case = JoinCase(rows, rows, lo, hi, 0.25, ())
        condition = TimingCondition(within(lo, hi), 0.25)
        found = correlate(source, source, condition, options=CorrelateOptions(slices=3))
        assert_answer(rows_of(found), case, "inner", "pairs", False, HUGE_TOLERANCE)


# --- identities ---

CONDITION = TimingCondition(within(-40, 60), 0.5)


def stream(seed: int, n: int = 300) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 6000, n))
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200], n), "id": np.arange(n) + 1,
        "key": rng.choice(["a", "b"], n, p=[0.9, 0.1]),
    })  # fmt: skip


LEFT, RIGHT = stream(1), stream(2)


def expected_pairs(**arguments: Any) -> list[tuple[int, int]]:
    table = correlate_tables(LEFT, RIGHT, CONDITION, **arguments)
    return sorted(zip(table["left_id"].to_pylist(), table["right_id"].to_pylist(), strict=True))


@pytest.mark.parametrize("slices", [1, 2, 7, 100])
def test_any_number_of_slices(spark: SparkSession, slices: int) -> None:
    planned = plan_correlation(
        frame(spark, LEFT), frame(spark, RIGHT), CONDITION, options=CorrelateOptions(slices=slices)
    )
    expected = expected_pairs()
    assert len(expected) > 1000
    assert pair_ids(planned.dataframe) == expected
    assert 0.7 * slices <= planned.slices <= slices + 5
    assert planned.dataframe.rdd.getNumPartitions() == planned.slices
    assert planned.replication >= 1


@pytest.mark.parametrize("slices", [2, 7])
@pytest.mark.parametrize("most", [1.0, 64.0])
@pytest.mark.usefixtures("small_slices")
def test_buckets_and_splits(
    spark: SparkSession, slices: int, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window longer than the data, so that keys and splits must share the work."""
    condition = TimingCondition(within(-(10**5), 10**5), 0.5)
    options = CorrelateOptions(slices=slices, slice_rows=1, max_replication=most)
    for by in ([], ["key"]):
        planned = plan_correlation(
            frame(spark, LEFT), frame(spark, RIGHT), condition, by=by, emit="counts",
            options=options, left_columns=["id", "key"],
        )  # fmt: skip
        found = planned.dataframe.toArrow()
        assert found.num_rows == 300
        sizes = RIGHT["key"].value_counts().to_pylist() if by else [{"values": None, "counts": 300}]
        size = {entry["values"]: entry["counts"] for entry in sizes}
        for row in found.to_pylist():
            assert row["matches"] == size[row["left_key"] if by else None]
        if most > 1:
            assert planned.slices >= slices
        if by and most == 1.0:
            assert planned.plan.buckets == slices
            assert planned.replication == 1


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_any_batching(spark: SparkSession, rows: int) -> None:
    with settings(spark, {BATCH_ROWS: rows}):
        left, right = frame(spark, LEFT), frame(spark, RIGHT)
        found = correlate(left, right, CONDITION, by="key", options=declared(batch_pairs=11))
        assert pair_ids(found) == expected_pairs(by="key")


def test_swapped_sides_mirror_the_window(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    back = correlate(right, left, CONDITION.mirrored(), options=CorrelateOptions(slices=3))
    assert sorted((a, b) for b, a in pair_ids(back)) == expected_pairs()


def test_any_partitioning_of_the_input(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    for one, other in (
        (left.coalesce(1), right.repartition(5)),
        (left.orderBy(F.desc("id")), right.repartition(3, "key")),
        (left.sortWithinPartitions("key").union(left.limit(0)), right.filter("id > 0")),
    ):
        assert pair_ids(correlate(one, other, CONDITION)) == expected_pairs()


def test_a_frame_with_itself(spark: SparkSession) -> None:
    left = frame(spark, LEFT)
    found = correlate(
        left, left, TimingCondition(within(0, 0), 1.0), left_time="id", right_time="id"
    )
    assert pair_ids(found) == [(i, i) for i in LEFT["id"].to_pylist()]


def test_results_are_frames_like_any_other(spark: SparkSession) -> None:
    """A result can be filtered, joined, counted and correlated again."""
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    pairs = correlate(left, right, CONDITION, options=declared())
    expected = expected_pairs()
    assert pairs.count() == len(expected)
    assert pairs.filter("left_id < 10 and right_id > 3").count() == sum(
        a < 10 and b > 3 for a, b in expected
    )
    assert len(pairs.limit(7).collect()) == 7
    again = correlate(
        pairs, right, TimingCondition(within(0, 0), 1.0), left_time="right_id", right_time="id",
        left_columns=["left_id", "right_id"],
    )  # fmt: skip
    assert again.count() == len(expected)


# --- when things happen ---


def test_the_join_waits_for_an_action(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    with jobs(spark, "declared") as ran:
        found = correlate(left, right, CONDITION, options=declared())
        assert found.columns == ["left_id", "right_id"]
    assert ran == []
    with jobs(spark, "measured") as ran:
        correlate(left, right, CONDITION, options=CorrelateOptions(slices=4))
    assert 1 <= len(ran) <= 4
    with jobs(spark, "action") as ran:
        assert found.count() == len(expected_pairs())
    assert ran


def test_slices_are_logged(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="coincide"):
        planned = plan_correlation(
            frame(spark, LEFT), frame(spark, RIGHT), CONDITION, options=CorrelateOptions(slices=4)
        )
    told = [r.getMessage() for r in caplog.records if r.name == "coincide"]
    assert [message for message in told if re.search(rf"\b{planned.slices} slices", message)]


@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
def test_counters(spark: SparkSession, emit: str) -> None:
    arguments: dict[str, Any] = {"by": "key", "emit": emit, "how": "left"}
    job = TableJoin(LEFT, RIGHT, CONDITION, **arguments)
    list(job.batches())
    planned = plan_correlation(
        frame(spark, LEFT), frame(spark, RIGHT), CONDITION, **arguments, observe=True,
        options=CorrelateOptions(slices=3, classes=1),
    )  # fmt: skip
    found = planned.dataframe.toArrow()
    counters = planned.counters()
    assert counters.pairs == job.summary.counters.pairs == len(expected_pairs(by="key"))
    assert counters.candidates >= max(counters.pairs, counters.probed)
    assert counters.probed > 0
    assert (
        planned.dataframe.columns
        == correlate(
            frame(spark, LEFT), frame(spark, RIGHT), CONDITION, **arguments, options=declared()
        ).columns
    )
    if emit != "pairs":
        assert found.num_rows == LEFT.num_rows
    assert (planned.left.rows, planned.right.rows) == (300, 300)


def test_counters_of_nothing(spark: SparkSession) -> None:
    left = frame(spark, LEFT)
    none = left.filter("id < 0")
    planned = plan_correlation(none, left, CONDITION, observe=True)
    assert planned.dataframe.collect() == []
    assert (planned.counters().candidates, planned.counters().pairs) == (0, 0)
    with pytest.raises(RuntimeError, match="observe=True"):
        plan_correlation(none, left, CONDITION, options=declared()).counters()


# --- declared statistics ---


@pytest.mark.parametrize(
    "known",
    [
        {"left_longest": 200, "right_longest": 200, "time_range": (0, 6000)},
        {"left_longest": 10**6, "right_longest": 200, "time_range": (2000, 2100)},
        {"left_longest": 200, "right_longest": 200, "time_range": (5, 5)},
        {"left_longest": 200, "right_longest": 200, "time_range": (1 - 2**61, 2**61 - 1)},
        {"left_longest": 200},
        {"time_range": (0, 10)},
    ],
    ids=str,
)
def test_declared_statistics(spark: SparkSession, known: dict[str, Any]) -> None:
    """They plan the slices and spare the look at the data, but change no answer."""
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    options = CorrelateOptions(slices=3, **known)
    planned = plan_correlation(left, right, CONDITION, options=options)
    assert (planned.left is None) == (len(known) == 3)
    assert pair_ids(planned.dataframe) == expected_pairs()


BAD_ROWS = {
    "order": ({"min_time": [9], "max_time": [8]}, {}),
    "length": ({"min_time": [0], "max_time": [101]}, {}),
    "range": ({"min_time": [2**61], "max_time": [2**61]}, {}),
    "wrap": ({"min_time": [-(2**63)], "max_time": [2**63 - 1]}, {}),
    "nan": ({"min_time": [float("nan")], "max_time": [1.0]}, {"unit": "us"}),
    "infinity": ({"min_time": [1.0], "max_time": [float("inf")]}, {"unit": "us"}),
    "all at once": ({"min_time": [9, 2**61, 0, None], "max_time": [8, 2**61, 101, 7]}, {}),
}


def bad_and_good(name: str) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Three good rows and the bad ones; the good ones; options."""
    columns, options = BAD_ROWS[name]
    kind = pa.float64() if options else pa.int64()
    table = pa.table({n: pa.array([0, 10, 20, *v], kind) for n, v in columns.items()})
    table = table.append_column("id", pa.array(range(table.num_rows)))
    return table, table.slice(0, 3), options


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", BAD_ROWS)
def test_invalid_rows_under_declared_statistics(spark: SparkSession, name: str, side: str) -> None:
    """Nobody looked beforehand, so the join itself must refuse them."""
    bad, good, extra = bad_and_good(name)
    tables = {"left": good, "right": good, side: bad}
    frames = {key: frame(spark, table) for key, table in tables.items()}
    known = {"left_longest": 100, "right_longest": 100, **extra}
    how = "anti" if name in ("order", "infinity") else "inner"
    condition = TimingCondition(within(0, 0), 1.0)
    found = correlate(**frames, condition=condition, how=how, options=declared(**known))
    with pytest.raises(PySparkException, match=f"{side}: invalid times in a row"):
        found.collect()


# --- bad input, known before anything runs ---


def test_plan_errors_run_nothing(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    text = left.withColumn("min_time", F.col("min_time").cast("string"))
    floats = left.withColumn("min_time", F.col("min_time").cast("double"))
    stamps = left.withColumn("min_time", F.timestamp_micros("min_time"))
    walls = stamps.withColumn("min_time", F.col("min_time").cast("timestamp_ntz"))
    number = right.withColumn("key", F.lit(1))
    doubled = left.select("*", F.lit(1).alias("ID"))
    variable = left.withColumnRenamed("key", "${spark.app.name}")
    with_months = left.withColumn("x", F.expr("make_ym_interval(1, 2)"))
    refused: list[tuple[type[CoincideError], str, tuple[DataFrame, DataFrame], dict[str, Any]]] = [
        (SchemaError, "left has no column 'id'", (left.drop("id"), right), {}),
        (SchemaError, "right has no column 'min_time'", (left, right.drop("min_time")), {}),
        (SchemaError, "right has no column 'start'", (left, right), {"right_time": "start"}),
        (SchemaError, "left has no column 'nope'", (left, right), {"by": "nope"}),
        (SchemaError, "right has no column 'nope'", (left, right), {"right_columns": "nope"}),
        (SchemaError, "2 columns called 'id'", (left.select("*", "id"), right), {}),
        (SchemaError, "cannot tell apart: id, ID", (doubled, right), {}),
        (SchemaError, "rename", (variable, right), {"left_columns": "${spark.app.name}"}),
        (SchemaError, "left.min_time is string", (text, right), {}),
        (SchemaError, "right.min_time is string", (left, text), {}),
        (SchemaError, "left.key is string", (left, right), {"left_time": "key"}),
        (SchemaError, "need a unit: left.min_time", (floats, right), {}),
        (SchemaError, "of one kind", (stamps, right), {}),
        (SchemaError, "of one kind", (stamps, walls), {}),
        (SchemaError, "'key' is string on the left and int on the right", (left, number), {"by": "key"}),
        (SchemaError, "compared exactly", (floats, floats), {"by": "min_time"}),
        (SchemaError, "interval year to month.* cast", (with_months, right), {"left_columns": "x"}),
        (SchemaError, "TimingCondition", (left, right), {"condition": within(0, 1)}),
        (SchemaError, "left must be a Spark DataFrame; found str", ("a.parquet", right), {}),
        (SchemaError, "right must be a Spark DataFrame; found NoneType", (left, None), {}),
        (ConditionError, "by must be .*; found None", (left, right), {"by": None}),
        (ConditionError, "left_columns must be", (left, right), {"left_columns": None}),
        (ConditionError, "left_time must be", (left, right), {"left_time": None}),
        (ConditionError, "options must be", (left, right), {"options": {}}),
        (ConditionError, "both ends", (left, right), {"condition": TimingCondition(deadline(5), 0.5)}),
        (
            ConditionError, "unit of the columns", (left, right),
            {"condition": TimingCondition(within("-1s", "1s"), 0.5)},
        ),
        (
            ConditionError, r"2\^61", (left, right),
            {
                "condition": TimingCondition(within("0s", "30000000d"), 0.5),
                "options": CorrelateOptions(unit="us"),
            },
        ),
        (ConditionError, "two output columns", (left, right), {"left_columns": ["id", "id"]}),
        (ConditionError, "no columns", (left, right), {"left_columns": [], "right_columns": []}),
        (ConditionError, "'outer'", (left, right), {"how": "outer"}),
        (ConditionError, "'sets'", (left, right), {"emit": "sets"}),
        (ConditionError, "probability", (left, right), {"how": "anti", "probability": True}),
        (ConditionError, "count what it drops", (left, right), {"options": declared(invalid="drop")}),
        (ConditionError, "right_time", (left, right), {"right_time": ("a", "b", "c")}),
    ]  # fmt: skip
    with jobs(spark, "refused") as ran:
        for error, words, sides, arguments in refused:
            with pytest.raises(CoincideError, match=words) as caught:
                correlate(*sides, **{"condition": CONDITION, **arguments})
            assert type(caught.value) is error, words
            assert "\n" not in str(caught.value)
    assert ran == []


def test_conditions_without_meaning() -> None:
    for confidence in (0, -0.5, 1.01, float("nan")):
        with pytest.raises(ConditionError, match="confidence"):
            TimingCondition(within(0, 1), confidence)
    with pytest.raises(ConditionError, match="above hi"):
        within(1, 0)
    with pytest.raises(ConditionError, match=r"2\^61"):
        within(0, 2**61)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", BAD_ROWS)
def test_invalid_rows_are_refused_before_the_join(
    spark: SparkSession, name: str, side: str
) -> None:
    bad, good, extra = bad_and_good(name)
    tables = {"left": good, "right": good, side: bad}
    frames = {key: frame(spark, table) for key, table in tables.items()}
    known = {f"{side}_longest": 100, **extra}
    arguments: dict[str, Any] = {"condition": CONDITION, "how": "left"}
    with pytest.raises(DataError, match=f"^{side}: .*invalid='drop'") as on_spark:
        correlate(**frames, **arguments, options=CorrelateOptions(**known))
    with pytest.raises(DataError) as in_table:
        correlate_tables(**tables, **arguments, options=CorrelateOptions(**known))
    told = [re.findall(r"(\w[^;]*?) in (\d+) row", str(e.value)) for e in (on_spark, in_table)]
    assert told[0] == told[1] != []

    options = CorrelateOptions(**known, invalid="drop")
    job = TableJoin(**tables, **arguments, options=options)
    kept = pa.Table.from_batches(job.batches(), job.schema)["left_id"].to_pylist()
    planned = plan_correlation(**frames, **arguments, options=options)
    assert (planned.left, planned.right) == (job.summary.left, job.summary.right)
    found = planned.dataframe.select("left_id").toArrow()["left_id"].to_pylist()
    assert sorted(found) == sorted(kept)


def test_nulls_are_no_error_and_stay_unmatched(spark: SparkSession) -> None:
    rows = [
        {"min_time": low, "max_time": high, "k": key, "id": i}
        for i, (low, high, key) in enumerate(
            [*((t, u, "a") for t in (0, None) for u in (5, None)), (0, 5, None), (2**61, None, "a")]
        )
    ]  # fmt: skip
    source = frame(spark, pa.Table.from_pylist(rows))
    for how, options in (
        ("inner", CorrelateOptions()),
        ("left", CorrelateOptions(slices=3)),
        ("anti", declared(time_range=(0, 4))),
        ("left", CorrelateOptions(invalid="drop")),
    ):
        found = correlate(source, source, CONDITION, by="k", how=how, options=options)
        assert_answer(rows_of(found), JoinCase(rows, rows, -40, 60, 0.5, ("k",)), how)


# --- nothing there ---


@pytest.mark.parametrize(
    ("how", "emit", "probability"),
    [("left", "pairs", True), ("inner", "lists", True), ("anti", "pairs", False),
     ("left", "counts", False)],
)  # fmt: skip
def test_sides_without_rows(spark: SparkSession, how: str, emit: str, probability: bool) -> None:
    rows = LEFT.slice(0, 2).to_pylist()
    full = frame(spark, LEFT.slice(0, 2))
    filtered, none = full.filter("id < 0"), spark.createDataFrame([], full.schema)
    arguments = {"by": "key", "how": how, "emit": emit, "probability": probability}
    options = CorrelateOptions(slices=3)
    schema = correlate(full, full, CONDITION, **arguments, options=declared()).schema
    for left, right, n_left, n_right in (
        (filtered, none, 0, 0),
        (none, full, 0, 2),
        (full, filtered, 2, 0),
    ):
        found = correlate(left, right, CONDITION, **arguments, options=options)
        assert found.schema == schema
        case = JoinCase(rows[:n_left], rows[:n_right], -40, 60, 0.5, ("key",))
        assert_answer(rows_of(found), case, how, emit, probability)


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


@pytest.mark.parametrize("zone", [None, "UTC"], ids=["timestamp_ntz", "timestamp"])
def test_timestamps_whatever_the_session_time_zone(spark: SparkSession, zone: str | None) -> None:
    condition = TimingCondition(within("-3min", "200s"), 0.5)
    tables = {day: (clocks(day, zone, 0), clocks(day, zone, 45)) for day in WALL_CLOCKS}
    columns = ["id", "min_time"]
    arguments: dict[str, Any] = {"left_columns": columns, "probability": True}
    # One join of all days: they are far apart.
    left, right = (pa.concat_tables([pair[i] for pair in tables.values()]) for i in (0, 1))
    left, right = (t.set_column(2, "id", pa.array(range(t.num_rows))) for t in (left, right))
    expected = correlate_tables(left, right, condition, **arguments).to_pylist()
    assert len(expected) >= 2 * left.num_rows
    for session_zone in ("Europe/Rome", "UTC", "America/Los_Angeles", "Asia/Kathmandu"):
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


def test_fractions_of_seconds_are_rounded_to_microseconds(spark: SparkSession) -> None:
    """To the nearest one: 0.4 us too early is no tick too early."""
    early, exact = (
        pa.table({"t": [1.5 + i * 1e-6 - noise for i in range(10)], "id": range(10)})
        for noise in (4e-7, 0.0)
    )
    found = correlate(
        frame(spark, early), frame(spark, exact), TimingCondition(within(1, 1), 1.0),
        left_time="t", right_time=["t"], options=CorrelateOptions(unit="s"),
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
