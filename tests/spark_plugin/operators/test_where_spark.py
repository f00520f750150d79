"""A condition on the columns of pairs, and all columns, on Spark: as in one process, by every way."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    ConditionError,
    CorrelateOptions,
    SchemaError,
    TimingCondition,
    accidental_pair_tables,
    accidental_pairs,
    correlate,
    correlate_files,
    correlate_tables,
    within,
)
from spark_plugin.ways.files.source import CoincideSource
from tests.helpers.joins import plan_correlation
from tests.helpers.rows import lists_in_order
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark


def side(seed: int, size: int = 300) -> pa.Table:
    """Columns of every kind that crosses in a way of its own; some null."""
    random = np.random.default_rng(seed)
    times = np.sort(random.permutation(4 * size)[:size])
    number = [None if n == 0 else int(n) for n in random.integers(0, 6, size)]
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)

    def of(make: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([None if n is None else make(n) for n in number], kind)

    return pa.table(
        {
            "id": np.arange(size),
            "min_time": times - random.integers(0, 9, size),
            "max_time": times,
            "small": pa.array(number, pa.int16()),
            "text": of(lambda n: f"t{n}", pa.string()),
            "at": of(lambda n: noon + dt.timedelta(hours=n), pa.timestamp("us", "UTC")),
            "day": of(lambda n: dt.date(2024, 1, n), pa.date32()),
            "is_odd": of(lambda n: n % 2 == 1, pa.bool_()),
            "price": of(lambda n: Decimal(n), pa.decimal128(8, 2)),
        }
    )


LEFT, RIGHT = side(1), side(2)
WHERE = (
    "left_small <> right_small AND left_text < 't5' AND left_at <> right_at"
    " AND (right_day > DATE '2024-01-02' OR right_is_odd) AND left_price < 4.5"
    " AND CAST(right_small AS DECIMAL(4, 2)) / 2 + 0.1 <> CAST(left_small AS DECIMAL(4, 1))"
)
GIVEN: dict[str, Any] = {"within": (-20, 30), "confidence": 0.6, "where": WHERE}


BEST = {"emit": "best", "how": "left", "right_columns": ("id", "text"), "probability": True}
SMALL_SLICES = {"way": "exchange", "slice_rows": 100}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"left_columns": "*", "right_columns": "*"}, {"slices": 5}),
    ({"emit": "counts", "how": "left"}, SMALL_SLICES),
    (BEST, {"slices": 5}),
    (BEST, SMALL_SLICES),
    (BEST, {"way": "broadcast-left"}),
    ({"how": "anti"}, {"way": "broadcast-left"}),
    ({"emit": "lists"}, {"way": "broadcast-right"}),
]


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_dataframes(spark: SparkSession, shape: Any, options: dict[str, Any]) -> None:
    expected = correlate_tables(LEFT, RIGHT, **GIVEN, **shape)
    planned = plan_correlation(
        frame(spark, LEFT), frame(spark, RIGHT), TimingCondition(within(-20, 30), 0.6), where=WHERE,
        **shape, options=CorrelateOptions(**options),
    )  # fmt: skip
    assert planned.plan.way == options.get("way", "exchange").split("-")[0]
    if planned.plan.way == "exchange":
        assert planned.plan.count > 4
    found = planned.dataframe.toArrow()
    assert found.column_names == expected.column_names
    assert lists_in_order(found) == lists_in_order(expected)
    assert found.num_rows > 30


def test_one_stream_and_shifts(spark: SparkSession) -> None:
    where = pc.field("left_text") != pc.field("right_text")
    given: dict[str, Any] = {**GIVEN, "where": where}
    expected = correlate_tables(LEFT, **given)
    rows, options = frame(spark, LEFT), CorrelateOptions(slices=4)
    found = correlate(rows, options=options, **given).toArrow()
    assert lists_in_order(found) == lists_in_order(expected)
    given["shifts"] = [100, -120]
    chance = accidental_pair_tables(LEFT, **given)
    assert accidental_pairs(rows, options=options, **given) == chance


def test_files_and_the_data_source(spark: SparkSession, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        pq.write_table(table, path, row_group_size=70)
    shape: dict[str, Any] = {"left_columns": "*", "right_columns": "id"}
    expected = lists_in_order(correlate_tables(LEFT, RIGHT, **GIVEN, **shape))
    for way in ("files", "exchange"):
        options = CorrelateOptions(way=way, slices=3)
        found = correlate_files(spark, *paths, **GIVEN, **shape, options=options).toArrow()
        assert lists_in_order(found) == expected
    spark.dataSource.register(CoincideSource)
    words = {"within": "-20,30", "confidence": 0.6, "where": WHERE, **shape}
    source = spark.read.format("coincide").options(left=paths[0], right=paths[1], **words).load()
    assert lists_in_order(source.toArrow()) == expected


def test_it_is_checked_when_the_join_is_planned(spark: SparkSession) -> None:
    left, right = frame(spark, LEFT), frame(spark, RIGHT)
    for where, words in (
        ("left_size = 3", "a pair has no column 'left_size'"),
        ("LEFT_SMALL = 3", "Write left_small: upper and lower case differ"),
        ("left_small =< 3", "'=<' is not a sign of SQL. Write <="),
        ("left_text = 3", "where does not fit these columns: left_text = 3 has no value"),
    ):
        with pytest.raises((SchemaError, ConditionError), match=words):
            correlate(left, right, within=5, confidence=0.5, where=where)


@pytest.mark.parametrize("how", ["inner", "full", "anti"])
def test_float_times_decimals_and_delta(spark: SparkSession, tmp_path: Path, how: Any) -> None:
    random = np.random.default_rng(5)
    tables = []
    for name in ("left", "right"):
        times = 1238166000 + np.sort(random.integers(0, 4_000, 200)) / 1000
        prices = pa.array([Decimal(int(n)) / 4 for n in random.integers(0, 9, 200)])
        table = pa.table(
            {"id": np.arange(200), "t": times, "price": prices.cast(pa.decimal128(8, 2))}
        )
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=60)
        tables.append(table)
    where = "right_t - left_t <= 0.029 AND left_price >= 1 AND delta_ns >= 2000000"
    asked: dict[str, Any] = {"within": "50ms", "left_time": "t", "right_time": "t", "where": where}
    counted = {"left_unit": "s", "right_unit": "s"}
    expected = correlate_tables(*tables, how=how, **asked, options=CorrelateOptions(**counted))
    # Which pairs there are is known of whole milliseconds, too.
    own, other = (np.rint((table["t"].to_numpy() - 1238166000) * 1000) for table in tables)
    apart = other[None, :] - own[:, None]
    is_dear = np.array(tables[0]["price"].to_pylist()) >= 1
    holds = (apart <= 29) & (apart >= 2) & is_dear[:, None]
    assert (apart[holds] == 29).any()
    unmatched = int((~holds.any(axis=1)).sum()), int((~holds.any(axis=0)).sum())
    rows = {"inner": holds.sum(), "full": holds.sum() + sum(unmatched), "anti": unmatched[0]}
    assert expected.num_rows == rows[how]
    sides = [frame(spark, table) for table in tables]
    for options in ({"way": "exchange", "slices": 4}, {"way": "broadcast-left"}):
        found = correlate(*sides, how=how, **asked, options=CorrelateOptions(**counted, **options))
        assert lists_in_order(found.toArrow()) == lists_in_order(expected)
    paths = [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    options = CorrelateOptions(**counted, way="files", slices=3)
    found = correlate_files(spark, *paths, how=how, **asked, options=options)
    assert lists_in_order(found.toArrow()) == lists_in_order(expected)
