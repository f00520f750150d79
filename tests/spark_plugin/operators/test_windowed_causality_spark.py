"""Causality through a window for each key, on Spark: each key as its own `WindowedCausality` has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from coincide import (
    CausalityCondition,
    ConditionError,
    DroppedRowsWarning,
    SchemaError,
    Spatial,
    Temporal,
    UnmatchableRowsWarning,
    WindowedCausality,
    WindowOptions,
    WindowReport,
    windowed_causality,
)
from coincide.engine.windowed_causality.arguments import WindowArguments
from spark_plugin.tasks import counting
from spark_plugin.tasks import windowed_causality as task
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

NEAR = CausalityCondition([Temporal(0, 400, strict=True), Spatial(0.3, strict=True)])
WHERE: Any = {"place": ("x", "y"), "arrival": "arrival", "home": (0.5, 0.5)}
KEYS = ["site", "floor"]


def stream(seed: int, rows: int = 3000, keys: int = 7) -> pa.Table:
    """Tuples in order of arrival, of keys of very different sizes; no two are simultaneous."""
    rng = np.random.default_rng(seed)
    site = np.minimum(rng.geometric(0.4, rows), keys)
    arrival = np.cumsum(rng.integers(1, 9, rows))
    return pa.table({
        "id": np.arange(rows), "name": [f"n{k}" for k in range(rows)], "site": site.astype(np.int32),
        "floor": pa.array(np.where(site % 2, "up", "down")), "arrival": arrival,
        "time": arrival - rng.integers(0, 200, rows), "x": rng.random(rows), "y": rng.random(rows),
    })  # fmt: skip


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=str)


def by_definition(table: pa.Table, policy: Any, columns: Any, **given: Any) -> tuple[Any, int]:
    """A window of its own for each key; and how many pairs are found."""
    rows = []
    for site in pc.unique(table["site"]).to_pylist():
        own = table.filter(pc.equal(table["site"], site))
        window = WindowedCausality(
            NEAR, columns=columns, options=WindowOptions(40, policy, **given), **WHERE
        )
        for row in window.push(own).to_pylist():
            rows.append({"site": site, "floor": own["floor"][0].as_py(), **row})
    return sorted(rows, key=str), len(rows)


@pytest.mark.parametrize("policy", ["fifo", "fhcfo", "expected"])
def test_each_key_has_its_window(spark: SparkSession, policy: Any) -> None:
    table, columns = stream(1), ["id", "name", "time"]
    want, pairs = by_definition(table, policy, columns)
    assert pairs > 500
    report = WindowReport()
    found = windowed_causality(
        frame(spark, table).orderBy(F.rand(3)), NEAR, by=KEYS, columns=columns,
        options=WindowOptions(40, policy), report=report, **WHERE,
    )  # fmt: skip
    assert in_order(found.toArrow()) == want
    assert [field.dataType.simpleString() for field in found.schema][:4] == [
        "int", "string", "bigint", "string"
    ]  # fmt: skip
    summary = report.summary()
    assert (summary.rows.rows, summary.pairs, summary.counts.kept) == (3000, pairs, 0)
    assert summary.counts.arrived == 3000
    assert 0 < summary.recall <= 1


def test_rows_of_a_key_may_come_in_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    table = stream(2, 600)
    want, _ = by_definition(table, "fifo", "id")
    wire = table.sort_by([("site", "ascending"), ("arrival", "ascending")])
    wire = wire.select(["site", "floor", "time", "arrival", "x", "y", "id"])
    monkeypatch.setattr(counting, "CHUNK_ROWS", 7)
    monkeypatch.setattr(task, "_PAIRS_AT_ONCE", 120)  # three tuples
    arguments = WindowArguments(NEAR, columns=("id",), options=WindowOptions(40, "fifo"), **WHERE)
    names = ("site", "floor", "cause_id", "effect_id", "delta", "distance")
    columns = task.KeyedTuples(arguments, 2, tuple(wire.column_names[2:]))
    own = task.WindowTask(columns, names)
    found = pa.Table.from_batches(own(wire.to_batches(max_chunksize=5)))
    assert in_order(found) == want


def test_bad_rows_are_counted_or_refused(spark: SparkSession) -> None:
    table = stream(3, 400)
    spoiled = {name: table[name].to_pylist() for name in table.column_names}
    spoiled["floor"][0] = None
    spoiled["x"][1] = None
    spoiled["y"][2] = float("inf")
    bad = pa.table(spoiled, table.schema)
    good = bad.filter(pc.and_(pc.is_valid(bad["floor"]), pc.is_valid(bad["x"])))
    want, _ = by_definition(good.filter(pc.is_finite(good["y"])), "fifo", "id")
    report = WindowReport()
    options = WindowOptions(40, "fifo", invalid="drop")
    found = windowed_causality(
        frame(spark, bad), NEAR, by=KEYS, options=options, report=report, **WHERE
    )
    assert in_order(found.toArrow()) == want
    with pytest.warns(DroppedRowsWarning), pytest.warns(UnmatchableRowsWarning):
        rows = report.summary().rows
    assert (rows.rows, rows.unmatchable, rows.invalid) == (400, 2, {"place": 1})
    refused = windowed_causality(frame(spark, bad), NEAR, by=KEYS, **WHERE)
    with pytest.raises(PySparkException, match="infinite coordinates"):
        refused.collect()


def test_a_null_key_excuses_no_impossible_place(spark: SparkSession) -> None:
    table = stream(3, 9)
    table = table.set_column(3, "floor", pa.nulls(9, pa.string()))
    table = table.set_column(6, "x", pa.array([float("inf"), None] + [0.5] * 7))
    report = WindowReport()
    options = WindowOptions(40, invalid="drop")
    found = windowed_causality(
        frame(spark, table), NEAR, by=KEYS, options=options, report=report, **WHERE
    )
    assert found.count() == 0
    with pytest.warns(DroppedRowsWarning), pytest.warns(UnmatchableRowsWarning):
        rows = report.summary().rows
    assert (rows.rows, rows.unmatchable, rows.invalid) == (9, 8, {"place": 1})
    with pytest.raises(PySparkException, match="infinite coordinates"):
        windowed_causality(frame(spark, table), NEAR, by=KEYS, **WHERE).collect()


def test_arrival_may_be_the_time_itself(spark: SparkSession) -> None:
    """Though the role, which is read next, would put tuples in another order."""
    table = pa.table({
        "id": [1, 2, 3, 4], "k": ["a"] * 4, "time": [0, 10, 20, 30],
        "role": ["effect", "cause", "effect", "cause"],
    })  # fmt: skip
    condition = CausalityCondition([Temporal(0, 100)])
    found = windowed_causality(
        frame(spark, table), condition, by="k", arrival="time", role="role",
        options=WindowOptions(1),
    )  # fmt: skip
    assert found.collect() == [("a", 2, 3, 10)]


def test_timestamps_and_no_rows(spark: SparkSession) -> None:
    source = spark.range(5).selectExpr(
        "id", "timestamp_seconds(id) AS time", "id % 2 AS `key one`", "named_struct('a', id) AS s"
    )
    asked: Any = {"by": "key one", "arrival": "time", "columns": ["id", "s"]}
    condition = CausalityCondition([Temporal("1us", "2s")])
    found = windowed_causality(source, condition, **asked)
    assert {(row[0], row[1], row[3], row["delta_us"]) for row in found.collect()} == {
        (0, 0, 2, 2_000_000), (0, 2, 4, 2_000_000), (1, 1, 3, 2_000_000),
    }  # fmt: skip
    with pytest.raises(ConditionError, match="the duration 1 has no unit"):
        windowed_causality(source, CausalityCondition([Temporal(1, "2s")]), **asked)
    nothing = windowed_causality(source.where("id > 9"), condition, report=WindowReport(), **asked)
    assert nothing.collect() == []


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"by": []}, ConditionError, "Name the columns of the key with by"),
        ({"arrival": None}, ConditionError, "the column of arrival times with arrival"),
        ({"by": "x"}, SchemaError, "event.x has a type that cannot be compared exactly"),
        ({"by": "nobody"}, SchemaError, "nobody"),
        ({"arrival": "floor"}, SchemaError, "event.floor"),
        ({"report": 3}, ConditionError, r"report must be a WindowReport\(\)"),
    ],
)
def test_bad_arguments(spark: SparkSession, given: Any, kind: Any, words: str) -> None:
    asked = {"by": KEYS, **WHERE, **given}
    with pytest.raises(kind, match=words):
        windowed_causality(frame(spark, stream(4, 9)), NEAR, **asked)


def test_other_tables_and_streams_are_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="WindowedCausality, which takes tables"):
        windowed_causality(stream(4, 9), NEAR, by=KEYS, **WHERE)  # type: ignore[arg-type]
    moving = spark.readStream.format("rate").load().selectExpr("value AS time", "value AS k")
    with pytest.raises(ConditionError, match="events are a streaming DataFrame"):
        windowed_causality(
            moving, CausalityCondition([Temporal(0, 5)]), by="k", arrival="time", columns="time"
        )
