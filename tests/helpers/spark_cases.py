"""Many adversarial joins in one Spark job: each case a key of its own, all under one condition."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from bench.hunt.intervals import Scale, draw_confidence, draw_window, huge_integer
from coincide import TimingCondition, within
from spark_plugin.cluster.spark_errors import explain_spark
from tests.helpers import strategies
from tests.helpers.comparison import KEY_TYPES, SHAPES, assert_answer
from tests.helpers.rows import pair_ids as ids_of
from tests.helpers.strategies import EPOCH_NS, JoinCase, Row

TYPES = {"case": pa.int32(), "min_time": pa.int64(), "max_time": pa.int64(), "id": pa.int64()}


SPREAD: dict[str, object] = {
    "spark.sql.adaptive.coalescePartitions.enabled": False, "spark.sql.shuffle.partitions": 3,
}  # fmt: skip
"""Settings under which an exchange of few rows has more than one partition."""


def shape_numbers(first: bool) -> list[Any]:
    """Numbers in `SHAPES`, each for a job. Quick is one of two shapes that differ in probabilities alone.

    The first one that has a twin is quick with them, or without, the second the other way round.
    """
    plain = [shape[:2] for shape in SHAPES if not shape[2]]
    twins = [shape[:2] for shape in SHAPES if shape[2] and shape[:2] in plain]
    quick = {(*twin, (number % 2 == 0) == first) for number, twin in enumerate(twins)}
    return [
        number
        if shape[:2] not in twins or shape in quick
        else pytest.param(number, marks=pytest.mark.slow)
        for number, shape in enumerate(SHAPES)
    ]


class Pack(NamedTuple):
    """Cases that share a window and a confidence threshold, and so can share a job."""

    cases: list[JoinCase]
    by: tuple[str, ...]

    @property
    def condition(self) -> TimingCondition:
        _, _, lo, hi, confidence, _ = self.cases[0]
        return TimingCondition(within(lo, hi), confidence)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        left, right = (
            table_of([row for case in self.cases for row in case[side]], self.by) for side in (0, 1)
        )
        return left, right

    def check(
        self, found: Sequence[Row], how: str, emit: str, probability: bool, tolerance: float
    ) -> None:
        """Compare the output rows of all cases with the reference's."""
        parts: dict[int | None, list[Row]] = {}
        for row in found:
            parts.setdefault(row["case"], []).append(row)
        assert parts.keys() <= set(range(len(self.cases)))
        for number, case in enumerate(self.cases):
            assert_answer(
                parts.get(number, []), case, how, emit, probability, tolerance, by_rows=False
            )


def table_of(rows: Sequence[Row], by: Sequence[str] = ()) -> pa.Table:
    kinds = TYPES | KEY_TYPES
    names = [*by, "min_time", "max_time", "id"]
    return pa.table({name: pa.array([row[name] for row in rows], kinds[name]) for name in names})


def pack(seed: int, n: int, *, keys: tuple[str, ...] = (), huge: bool = False) -> Pack:
    """A seeded pack of n cases; `keys` are further key columns, see `strategies.KEY_VALUES`."""
    choose = strategies._NumpyChooser(np.random.default_rng(seed))
    step = choose.choice((10, 1, 1000, 999_983))
    sides: list[list[list[Row]]] = [[], []]
    for number in range(n):
        origin = choose.choice((0, 0, -5 * step, EPOCH_NS, 1 - EPOCH_NS))
        scale = Scale(origin, step, choose.choice((20, 6, 0, 60)))
        for side in sides:
            rows = strategies._huge_rows(choose, 8) if huge else strategies._rows(choose, scale, 12)
            rows = strategies._finish(choose, rows, keys, nulls=True)
            side.append([{"case": number, **row} for row in rows])
    lo, hi = draw_window(choose, step)
    if huge:
        lo, hi = sorted((huge_integer(choose), huge_integer(choose)))
    confidence = draw_confidence(choose)
    while True:
        lower = confidence
        for left, right in zip(*sides, strict=True):
            lower = strategies._clear_confidence(left, right, lo, hi, lower)
        if lower == confidence:
            break
        confidence = lower
    by = ("case", *keys)
    cases = [JoinCase(a, b, lo, hi, confidence, by) for a, b in zip(*sides, strict=True)]
    return Pack(cases, by)


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """The table on Spark; times without a zone are wall clocks and stay so."""
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def rows_of(found: DataFrame) -> list[Row]:
    return found.toArrow().to_pylist()


def pair_ids(found: DataFrame) -> list[tuple[int, int]]:
    """The pairs of ids, in order."""
    return ids_of(found.select("left_id", "right_id").toArrow())


@contextmanager
def settings(spark: SparkSession, values: dict[str, object]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(name, str(value))
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


_numbers = itertools.count()


@contextmanager
def jobs(spark: SparkSession, group: str) -> Iterator[list[int]]:
    """The numbers of the Spark jobs that ran inside, known afterwards."""
    context = spark.sparkContext
    started: list[int] = []
    # A name that no other test of the session has had.
    group = f"{group} {next(_numbers)}"
    context.setJobGroup(group, group)
    try:
        yield started
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
        started += context.statusTracker().getJobIdsForGroup(group)


def refusal(found: DataFrame) -> str:
    """What the job says that computes a result and fails."""
    with pytest.raises(PySparkException) as raised:
        found.collect()
    is_bad_use, words = explain_spark(raised.value)
    assert is_bad_use
    return words
