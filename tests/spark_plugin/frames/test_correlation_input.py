"""`correlate` on declared statistics, bad events and empty sides."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from coincide import (
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_tables,
    deadline,
    within,
)
from coincide.model.errors import CoincideError, ConditionError, DataError, SchemaError
from tests.helpers.comparison import assert_answer
from tests.helpers.example_streams import CONDITION, LEFT, RIGHT, declared, expected_pairs, unseen
from tests.helpers.joins import plan_correlation, table_join
from tests.helpers.spark_cases import frame, jobs, pair_ids, rows_of
from tests.helpers.strategies import JoinCase

pytestmark = pytest.mark.spark


# --- declared statistics ---


@pytest.mark.parametrize(
    "known",
    [{"left_longest": 200, "right_longest": 200}, {"left_longest": 10**6}],
    ids=str,
)
def test_declared_statistics(spark: SparkSession, known: dict[str, Any]) -> None:
    """They say how far pairs reach, and change no answer."""
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    options = CorrelateOptions(slices=3, **known)
    planned = plan_correlation(left, right, CONDITION, options=options)
    assert pair_ids(planned.dataframe) == expected_pairs()


BAD_ROWS = {
    "order": ({"min_time": [9], "max_time": [8]}, {}),
    "length": ({"min_time": [0], "max_time": [101]}, {}),
    "range": ({"min_time": [2**61], "max_time": [2**61]}, {}),
    "range of ns": ({"min_time": [5e9], "max_time": [5e9]}, {"unit": "s"}),
    "wrap": ({"min_time": [-(2**63)], "max_time": [2**63 - 1]}, {}),
    "nan": ({"min_time": [float("nan")], "max_time": [1.0]}, {"unit": "us"}),
    "infinity": ({"min_time": [1.0], "max_time": [float("inf")]}, {"unit": "us"}),
    "all at once": ({"min_time": [9, 2**61, 0, None], "max_time": [8, 2**61, 101, 7]}, {}),
}


SIDES = ("left", "right")


def bad_and_good(name: str) -> tuple[pa.Table, pa.Table, dict[str, Any]]:
    """Three good rows and the bad ones; the good ones; options."""
    columns, options = BAD_ROWS[name]
    kind = pa.float64() if options else pa.int64()
    table = pa.table({n: pa.array([0, 10, 20, *v], kind) for n, v in columns.items()})
    table = table.append_column("id", pa.array(range(table.num_rows)))
    return table, table.slice(0, 3), options


@pytest.mark.parametrize(("name", "side"), list(zip(BAD_ROWS, itertools.cycle(SIDES))))
def test_invalid_rows_under_declared_statistics(spark: SparkSession, name: str, side: str) -> None:
    """No job counts the rows beforehand, so the join itself must refuse them."""
    bad, good, extra = bad_and_good(name)
    tables = {"left": good, "right": good, side: bad}
    frames = {key: frame(spark, table) for key, table in tables.items()}
    longest = "100ns" if extra else 100
    known = {"left_longest": longest, "right_longest": longest, **extra}
    how = "anti" if name in ("order", "infinity") else "inner"
    condition = TimingCondition(within(0, 0), 1.0)
    with pytest.raises(PySparkException, match=f"{side}: [^:]* of a row .found min_time=") as error:
        correlate(**frames, condition=condition, how=how, options=unseen(**known)).collect()
    assert ("(a tick is 1 ns, " in str(error.value)) == (name == "range of ns")


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
        (SchemaError, "If right has another name for a key", (left, right), {"by": "nope"}),
        (SchemaError, "right has no column 'nope'", (left, right), {"right_columns": "nope"}),
        (SchemaError, "2 columns called 'id'", (left.select("*", "id"), right), {}),
        (SchemaError, "cannot tell some columns of .*id, ID", (doubled, right), {}),
        (SchemaError, "Rename", (variable, right), {"left_columns": "${spark.app.name}"}),
        (SchemaError, "left.min_time must be a timestamp", (text, right), {}),
        (SchemaError, "right.min_time must be a timestamp", (left, text), {}),
        (SchemaError, "left.key must be a timestamp", (left, right), {"left_time": "key"}),
        (SchemaError, "need a unit .found none for left.min_time", (floats, right), {}),
        (SchemaError, "must all be instants", (stamps, right), {}),
        (SchemaError, "must all be instants", (stamps, walls), {}),
        (SchemaError, "'key' is string on the left and int on the right", (left, number), {"by": "key"}),
        (SchemaError, "compared exactly", (floats, floats), {"by": "min_time"}),
        (SchemaError, "interval year to month.* Cast", (with_months, right), {"left_columns": "x"}),
        (SchemaError, "TimingCondition", (left, right), {"condition": within(0, 1)}),
        (SchemaError, "left must be a Spark DataFrame .found str", ("a.parquet", right), {}),
        (SchemaError, "right must be a Spark DataFrame .found str", (left, "b.parquet"), {}),
        (ConditionError, "by must be .* .found None", (left, right), {"by": None}),
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


@pytest.mark.parametrize(("name", "side"), list(zip(BAD_ROWS, itertools.cycle(SIDES[::-1]))))
def test_invalid_rows_are_refused_before_the_join(
    spark: SparkSession, name: str, side: str
) -> None:
    bad, good, extra = bad_and_good(name)
    tables = {"left": good, "right": good, side: bad}
    frames = {key: frame(spark, table) for key, table in tables.items()}
    known = {f"{side}_longest": "100ns" if extra else 100, **extra}
    ends = [
        f"{end}ns" if extra else end for end in (CONDITION.predicate.lo, CONDITION.predicate.hi)
    ]
    condition = TimingCondition(within(*ends), CONDITION.confidence)
    arguments: dict[str, Any] = {"condition": condition, "how": "left"}
    with pytest.raises(DataError, match=f"^{side}: .*invalid='drop'") as on_spark:
        correlate(**frames, **arguments, options=CorrelateOptions(**known))
    with pytest.raises(DataError) as in_table:
        correlate_tables(**tables, **arguments, options=CorrelateOptions(**known))
    told = [re.findall(r"(\w[^;]*?) in (\d+) row", str(e.value)) for e in (on_spark, in_table)]
    assert told[0] == told[1] != []

    options = CorrelateOptions(**known, invalid="drop")
    job = table_join(**tables, **arguments, options=options)
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
        ("anti", declared()),
        ("left", CorrelateOptions(invalid="drop")),
    ):
        found = correlate(source, source, CONDITION, by="k", how=how, options=options)
        assert_answer(rows_of(found), JoinCase(rows, rows, -40, 60, 0.5, ("k",)), how)


# --- nothing there ---


@pytest.mark.parametrize(
    ("how", "emit", "probability"),
    [
        ("left", "pairs", True),
        ("inner", "lists", True),
        pytest.param("anti", "pairs", False, marks=pytest.mark.slow),
        pytest.param("left", "counts", False, marks=pytest.mark.slow),
    ],
)
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
        assert_answer(rows_of(found), case, how, emit, probability, by_rows=False)
