"""The stage adds up what tasks count, whatever they call it: other operators bring their own names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import ClassVar

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import types as T

from spark_plugin.frames import stage as stages
from spark_plugin.frames.stage import Counted, Stage, counted_by_tasks
from spark_plugin.tasks.counting import Answer, CountingTask

ALL = {"segments": 100, "crossings": 50, "largest_rounded": 99}
SCHEMA = T.StructType([T.StructField("id", T.LongType())])


@dataclass(frozen=True)
class Crossings(CountingTask):
    """Returns the odd numbers, and counts what it sees."""

    counted: ClassVar[tuple[str, ...]] = ("segments", "crossings", "largest_rounded")

    names: tuple[str, ...] = ("id",)
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        told = dict.fromkeys(reversed(self.counted), 0)
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            odd = [number for number in numbers if number % 2]
            told["segments"] += len(numbers)
            told["crossings"] += len(odd)
            told["largest_rounded"] = max(told["largest_rounded"], *numbers)
            yield [pa.array(odd, pa.int64())], None
        yield [pa.nulls(1, pa.int64())], told


def batches() -> list[pa.RecordBatch]:
    return [pa.record_batch({"id": pa.array(ids, pa.int64())}) for ids in ([1, 2, 3], [5])]


@pytest.mark.parametrize("metrics", [None, "told"])
def test_numbers_are_in_the_order_of_their_names(metrics: str | None) -> None:
    found = list(Crossings(metrics=metrics)(batches()))
    table = pa.Table.from_batches(found).to_pydict()
    if metrics is None:
        assert table == {"id": [1, 3, 5]}
    else:
        assert table == {"id": [1, 3, 5, None], "told": [None, None, None, [4, 3, 5, 3]]}


@pytest.mark.spark
@pytest.mark.parametrize("is_joined", [False, True])
def test_spark_adds_up_what_is_counted(spark: SparkSession, is_joined: bool) -> None:
    observation = Observation()
    stage = Stage(raise_invalid=False, profile=None, metrics="told", observation=observation)
    rows = spark.range(0, 100, 1, 3)
    found = stage.run(rows, Crossings(metrics="told"), SCHEMA, is_joined=is_joined).collect()
    assert sorted(row.id for row in found if row.id >= 0) == list(range(1, 100, 2))
    assert counted_by_tasks(observation) == Counted(ALL, 1)


@pytest.mark.spark
@pytest.mark.parametrize("is_joined", [False, True])
def test_of_tasks_that_are_stopped_nothing_is_told(spark: SparkSession, is_joined: bool) -> None:
    """The first one has come to its end, and found nothing."""
    observation = Observation()
    stage = Stage(raise_invalid=False, profile=None, metrics="told", observation=observation)
    rows = spark.range(0, 8, 2, 1).union(spark.range(9, 4001, 2, 2))
    found = stage.run(rows, Crossings(metrics="told"), SCHEMA, is_joined=is_joined)
    assert len(found.take(5)) == 5
    assert counted_by_tasks(observation) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    ("make", "runs"),
    [
        (lambda rows: rows.sort("id"), 2),
        (lambda rows: rows.repartitionByRange(2, "id"), 2),
        (lambda rows: rows.coalesce(1), 1),
        (lambda rows: rows.coalesce(2).sort("id"), 2),
        (lambda rows: rows.sparkSession.range(9).union(rows), 1),
    ],
    ids=["sorted", "in ranges", "in one partition", "in two, sorted", "after others"],
)
def test_what_is_computed_twice_is_told_once(
    spark: SparkSession, make: Callable[[DataFrame], DataFrame], runs: int
) -> None:
    """Spark samples what it sorts by a job of its own."""
    observation = Observation()
    stage = Stage(raise_invalid=False, profile=None, metrics="told", observation=observation)
    found = stage.run(spark.range(0, 100, 1, 3), Crossings(metrics="told"), SCHEMA)
    assert len(make(found).collect()) >= 50
    assert counted_by_tasks(observation) == Counted(ALL, runs)


@pytest.mark.spark
def test_of_what_fails_nothing_is_told(spark: SparkSession) -> None:
    """Not even where all other tasks have come to their end before one fails."""
    observation = Observation()
    stage = Stage(raise_invalid=False, profile=None, metrics="told", observation=observation)
    found = stage.run(spark.range(0, 100, 1, 4), Crossings(metrics="told"), SCHEMA)
    slept = "coalesce(reflect('java.lang.Thread', 'sleep', 3000L), '')"
    with pytest.raises(Exception, match="too late"):
        found.selectExpr(f"if(id = 45, raise_error('too late' || {slept}), id) AS id").collect()
    assert counted_by_tasks(observation) is None


@pytest.mark.spark
def test_of_what_never_began_nothing_is_told(spark: SparkSession, tmp_path: Path) -> None:
    observation = Observation()
    stage = Stage(raise_invalid=False, profile=None, metrics="told", observation=observation)
    found = stage.run(spark.range(0, 100, 1, 3), Crossings(metrics="told"), SCHEMA)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        found.write.parquet(str(tmp_path))
    assert counted_by_tasks(observation) is None


@pytest.mark.spark
def test_who_asks_before_an_action_is_told_what_is_waited_for(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    monkeypatch.setattr(stages, "_PATIENCE", 0.1)
    logger = logging.getLogger("coincide")
    observation = Observation()
    stage = Stage(raise_invalid=False, profile=None, metrics="told", observation=observation)
    found = stage.run(spark.range(0, 100, 1, 3), Crossings(metrics="told"), SCHEMA)
    logger.addHandler(told)
    try:
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(counted_by_tasks, observation)
            try:
                assert told.arrived.wait(60)
                assert not asked.done()
            finally:
                found.count()  # else it would wait for good
            counted = asked.result(60)
            assert counted == Counted(ALL, 1)
    finally:
        logger.removeHandler(told)
    assert told.words == [stages._WAITS]
    counted_by_tasks(observation)
    assert len(told.words) == 1


class Told(logging.Handler):
    """What the logger says, and when it says the first of it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.arrived, self.words = Event(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(record.getMessage())
        self.arrived.set()
