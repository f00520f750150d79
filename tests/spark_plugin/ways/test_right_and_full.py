"""Right events without a match: each once on every way, also where slices have copies of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    JoinReport,
    Temporal,
    TimingCondition,
    causality_tables,
    correlate,
    correlate_files,
    correlate_tables,
    register_source,
    stream_tables,
    within,
)
from tests.helpers.joins import local_files_join, plan_correlation
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.usefixtures("any_order")

CONDITION = TimingCondition(within(-20, 60), 0.5)
GIVEN: dict[str, Any] = {
    "by": [("key", "of")], "left_columns": ["name", "id"], "right_columns": ["id", "size"],
    "where": "left_size <= right_size", "probability": True,
}  # fmt: skip


def events(n: int, seed: int, key: str, kind: pa.DataType) -> pa.Table:
    """Long events among short ones, so that slices have copies; times and keys that are missing."""
    rng = np.random.default_rng(seed)
    low = np.sort(rng.integers(0, 3000, n))
    return pa.table({
        "min_time": pa.array(low, mask=rng.random(n) < 0.04),
        "max_time": low + rng.choice([0, 10, 90], n, p=[0.6, 0.3, 0.1]),
        "id": np.arange(n) // 2, "size": rng.integers(0, 3, n),
        "name": rng.choice(["a", "b"], n),
        key: pa.array(rng.integers(0, 3, n), kind, mask=rng.random(n) < 0.05),
    })  # fmt: skip


SIDES = events(120, 1, "key", pa.int32()), events(150, 2, "of", pa.int64())


def expected(how: str, **given: Any) -> pa.Table:
    found = correlate_tables(*SIDES, CONDITION, how=how, **GIVEN | given)
    assert found["right_id"].null_count < found.num_rows
    assert found["left_id"].null_count > 20
    return found


@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("exchange", "full"), ("broadcast-left", "right"), ("broadcast-right", "full"),
        ("auto", "right"),
    ],
)  # fmt: skip
def test_by_every_way(spark: SparkSession, small_slices: None, way: str, how: str) -> None:
    frames = [frame(spark, table).repartition(3) for table in SIDES]
    options = CorrelateOptions(way=way, slices=6 if way == "exchange" else None)  # type: ignore[arg-type]
    planned = plan_correlation(*frames, CONDITION, how=how, options=options, observe=True, **GIVEN)
    want = expected(how)
    found = planned.dataframe.toArrow()
    assert found.schema.names == want.schema.names
    assert found["key"].type == pa.int64()
    assert in_order(found) == in_order(want)
    pairs = want.num_rows - want["left_id"].null_count - want["right_id"].null_count
    assert planned.summary().counters.pairs == pairs
    planned.close()


def written(folder: Path) -> tuple[str, str]:
    paths = folder / "left.parquet", folder / "right.parquet"
    for path, table in zip(paths, SIDES, strict=True):
        pq.write_table(table, path, row_group_size=16)
    return str(paths[0]), str(paths[1])


DIRECT = CorrelateOptions(way="files", slices=5)


@pytest.mark.spark
def test_of_files_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    paths, want = written(tmp_path), expected("full")
    given = {"how": "full", "options": DIRECT, **GIVEN}
    found = correlate_files(spark, *paths, CONDITION, **given)
    assert in_order(found.toArrow()) == in_order(want)
    report = JoinReport()
    done = correlate_files(
        spark, *paths, CONDITION, output=tmp_path / "out", report=report, **given
    )
    table = pq.read_table(tmp_path / "out")
    assert in_order(table) == in_order(want)
    assert (done.rows, done.left.rows, done.right.rows) == (want.num_rows, 120, 150)
    reads = [spark.read.parquet(path) for path in paths]
    assert in_order(correlate(*reads, CONDITION, how="full", **GIVEN).toArrow()) == in_order(want)


@pytest.mark.spark
def test_in_the_data_source(spark: SparkSession, tmp_path: Path) -> None:
    register_source(spark)
    paths = written(tmp_path)
    words = {
        "within": "-20,60", "confidence": "0.5", "by": "key=of", "left_columns": "name,id",
        "right_columns": "id,size", "where": GIVEN["where"], "probability": "true", "slices": "3",
    }  # fmt: skip
    left, right = paths
    source = spark.read.format("coincide").options(left=left, right=right, how="right", **words)
    assert in_order(source.load().toArrow()) == in_order(expected("right"))


@pytest.mark.parametrize("how", ["right", "full"])
def test_of_files_in_one_process(tmp_path: Path, how: str) -> None:
    job = local_files_join(*written(tmp_path), CONDITION, how=how, options=DIRECT, **GIVEN)
    found = pa.Table.from_batches(job.batches(), job.schema)
    assert in_order(found) == in_order(expected(how))
    assert (job.summary.left.rows, job.summary.right.rows) == (120, 150)


def test_declared_lengths_and_units_stay_with_their_sides() -> None:
    left = pa.table({"t": [0, 50], "until": [1, 52], "id": [1, 2]})
    right = pa.table({"t": [3000, 90_000], "id": [7, 8]})
    options = CorrelateOptions(left_unit="s", right_unit="ms", left_longest="2s")
    found = correlate_tables(
        left, right, within=("0s", "5s"), confidence=0.5, left_time=("t", "until"), right_time="t",
        how="full", options=options,
    )  # fmt: skip
    assert sorted(map(str, found.to_pydict().values())) == sorted(
        map(str, ([1, 2, None], [7, None, 8]))
    )


def test_what_it_does_not_go_with() -> None:
    left, right = SIDES
    for how in ("right", "full"):
        with pytest.raises(
            ConditionError, match=f"how='{how}' needs two sides, but every event of one"
        ):
            correlate_tables(left, condition=CONDITION, how=how)
        with pytest.raises(ConditionError, match=f"causality does not take how='{how}'"):
            causality_tables(left, right, CausalityCondition(Temporal(0, 3)), how=how)
        with pytest.raises(ConditionError, match="needs whole tables"):
            stream_tables(CONDITION, left_delay=1, right_delay=1, how=how)
        with pytest.raises(ConditionError, match="swap the sides and mirror the window"):
            correlate_tables(left, right, CONDITION, how=how, emit="lists")


@pytest.mark.spark
def test_streaming_sides_are_refused(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr("value AS id", "value AS min_time", "value AS max_time")
    options = CorrelateOptions(way="broadcast-right", left_longest=0, right_longest=90)
    with pytest.raises(ConditionError, match="how='full' needs all rows of both sides at once"):
        correlate(stream, frame(spark, SIDES[1]), CONDITION, how="full", options=options)
