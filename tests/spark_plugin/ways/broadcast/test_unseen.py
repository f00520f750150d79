"""A small side beside one at which nobody looks: the reference's answer, and what is counted."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    TimingCondition,
    correlate,
    correlate_tables,
    within,
)
from coincide.errors import DataError
from spark_plugin.ways.broadcast import unseen
from spark_plugin.ways.correlation import Correlation
from tests.helpers.comparison import PROBABILITY_TOLERANCE, SHAPES
from tests.helpers.joins import plan_correlation
from tests.helpers.spark_cases import frame, jobs, pack, rows_of

pytestmark = pytest.mark.spark

CONDITION = TimingCondition(within(-40, 60), 0.5)


@pytest.fixture(autouse=True)
def _any_side_may_be_small(monkeypatch: pytest.MonkeyPatch, _sides_pass_for_large: None) -> None:
    monkeypatch.setattr(unseen, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(unseen, "_LARGER", 1)


def stream(seed: int, n: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 10**6, n)
    return pa.table({
        "min_time": low, "max_time": low + rng.choice([0, 5, 30, 200], n), "id": np.arange(n),
        "word": [f"w{i % 7}" for i in range(n)],
    })  # fmt: skip


LARGE, SMALL = stream(1, 3000), stream(2, 200)
SIDES = {"left": (SMALL, LARGE), "right": (LARGE, SMALL)}


def planned(left: DataFrame, right: DataFrame, small: str, **arguments: Any) -> Correlation:
    condition = arguments.pop("condition", CONDITION)
    found = plan_correlation(left, right, condition, observe=True, **arguments)
    assert (found.way, getattr(found.plan, "small", None)) == ("broadcast", small)
    # Of the side that streams nothing is known yet.
    assert [found.left is None, found.right is None] == [small == "right", small == "left"]
    return found


def may_be(small: str, how: str, emit: str) -> bool:
    """Whether no step that shuffles pairs depends on how many there are."""
    return small == "right" or (how, emit) not in (
        ("inner", "lists"),
        ("left", "pairs"),
        ("left", "lists"),
    )


@pytest.mark.parametrize("small", SIDES)
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_packs_of_cases(spark: SparkSession, number: int, small: str) -> None:
    how, emit, probability = SHAPES[number]
    keys = ((), ("station",), ("station", "channel"))[number % 3]
    cases = pack(7310 + number, 12, keys=keys)
    tables = list(cases.tables())
    streamed = tables[small == "left"]
    # Rows of a case that is not there, without partners, make a side large.
    others = streamed.slice(0, 1).take([0] * 2000)
    far = pa.array([10**15] * 2000, others["min_time"].type)
    for name, column in (
        ("min_time", far),
        ("max_time", far),
        ("case", pa.array([10**6] * 2000, others["case"].type)),
    ):
        others = others.set_column(others.column_names.index(name), name, column)
    tables[small == "left"] = pa.concat_tables([streamed, others])
    left, right = (frame(spark, table).repartition(2) for table in tables)
    arguments: dict[str, Any] = {
        "condition": cases.condition, "by": cases.by, "how": how, "emit": emit,
        "probability": probability,
    }  # fmt: skip
    if not may_be(small, how, emit):
        assert plan_correlation(left, right, **arguments).left is not None
        return
    join = planned(left, right, small, **arguments)
    found = [row for row in rows_of(join.dataframe) if row["case"] != 10**6]
    cases.check(found, how, emit, probability, PROBABILITY_TOLERANCE)


ASKED: dict[str, dict[str, Any]] = {
    "where": {"where": "left_word = right_word", "emit": "counts"},
    "several best": {"emit": "best", "k": 3, "prefer": "nearest", "how": "left"},
    "mutual": {"matching": "mutual"},
}  # fmt: skip


@pytest.mark.parametrize("small", SIDES)
@pytest.mark.parametrize("asked", ASKED)
def test_as_tables(spark: SparkSession, asked: str, small: str) -> None:
    expected = correlate_tables(*SIDES[small], CONDITION, **ASKED[asked])
    left, right = (frame(spark, table) for table in SIDES[small])
    found = planned(left, right, small, **ASKED[asked]).dataframe
    assert found.columns == expected.column_names
    assert sorted(map(repr, (tuple(row) for row in found.collect()))) == sorted(
        repr(tuple(row.values())) for row in expected.to_pylist()
    )


def test_nobody_looks_at_the_large_side(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One job when it is planned, of the small side, and one that reads the large one."""
    left, right = (frame(spark, table) for table in SIDES["right"])
    left.write.parquet(str(tmp_path / "left"))
    read = spark.read.parquet(str(tmp_path / "left")).where("id >= 0")
    with jobs(spark, "planning") as run, caplog.at_level(logging.INFO, "coincide"):
        found = correlate(read, right, CONDITION, emit="counts")
    assert len(run) == 1
    assert caplog.messages[0].endswith(", no look at left")
    assert found.count() == correlate_tables(*SIDES["right"], CONDITION, emit="counts").num_rows


def test_more_rows_than_a_chunk_are_looked_at(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unseen, "SMALLEST_CHUNK", 150)
    left, right = (frame(spark, table) for table in SIDES["right"])
    with caplog.at_level(logging.INFO, "coincide"):
        assert plan_correlation(left, right, CONDITION).left is not None
    told, planned = caplog.messages[:2]
    assert told.startswith("correlate: right was collected in vain: ")
    assert "more than 150 rows or " in told
    assert "no look" not in planned


def test_what_is_counted(spark: SparkSession) -> None:
    """Rows of the large side are counted while they pass, those that match nothing among them."""
    nothing = pa.table(
        {"min_time": [None, 3], "max_time": [4, None], "id": [-1, -2], "word": ["", ""]}
    )
    large = pa.concat_tables([LARGE, nothing.cast(LARGE.schema)])
    report, told = JoinReport(), JoinReport()
    found = correlate(frame(spark, large), frame(spark, SMALL), CONDITION, report=report)
    pairs = found.count()
    expected = correlate_tables(large, SMALL, CONDITION, report=told)
    assert pairs == expected.num_rows > 0
    summary, tables = report.summary(), told.summary()
    assert (summary.left, summary.right) == (tables.left, tables.right)
    assert summary.counters is not None
    assert summary.counters.pairs == pairs


def test_invalid_rows(spark: SparkSession) -> None:
    """Of the small side they are found at once, of the other one by the job that meets them."""
    wrong = pa.table({"min_time": [5], "max_time": [4], "id": [-1], "word": [""]})
    large, small = (pa.concat_tables([each, wrong]) for each in (LARGE, SMALL))
    with pytest.raises(DataError, match="in 1 row, for example min_time=5, max_time=4"):
        correlate(frame(spark, LARGE), frame(spark, small), CONDITION)
    found = correlate(frame(spark, large), frame(spark, SMALL), CONDITION)
    with pytest.raises(PySparkException, match="of a row, min_time=5, max_time=4, id=-1\\. Mend"):
        found.collect()
    dropped = correlate(
        frame(spark, large),
        frame(spark, SMALL),
        CONDITION,
        options=CorrelateOptions(invalid="drop"),
    )
    assert dropped.count() == correlate_tables(LARGE, SMALL, CONDITION).num_rows


def test_shifts_look_for_themselves(spark: SparkSession) -> None:
    report, told = JoinReport(), JoinReport()
    correlate(
        frame(spark, LARGE), frame(spark, SMALL), CONDITION, shifts=[1000, -1000], report=report
    ).collect()
    correlate_tables(LARGE, SMALL, CONDITION, shifts=[1000, -1000], report=told)
    assert report.summary().accidental == told.summary().accidental
