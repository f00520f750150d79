"""Clock errors of DataFrames: the answer is that of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from bench.clocks import SECOND, Truth, made
from coincide import (
    ConditionError,
    CorrelateOptions,
    clock_error_tables,
    clock_errors,
    corrected_clock,
    correlate,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def keyed() -> tuple[pa.Table, pa.Table]:
    """Three devices, of which c has nothing in common and d is on one side alone; and null rows."""
    rng = np.random.default_rng(5)
    sides: list[list[tuple[Any, Any, str]]] = [[], []]
    for device, offset in (("a", 3.0), ("b", -11.0)):
        one = made(rng, 90, 120, 120, Truth(offset, 30e-6, 0.003, 5000.0))
        for side, times in zip(sides, (one.left, one.right), strict=True):
            side += [(device, int(t), "x") for t in times]
    for side in sides:
        side += [("c", int(t), "x") for t in rng.uniform(0, 5000, 100) * SECOND]
        side += [(None, 5, "x"), ("a", None, "x")]
    sides[0] += [("d", 5, "x"), ("d", 6, "y")]
    own, others = (
        pa.table({
            "device": [d for d, _, _ in side],
            "time": pa.array([t for _, t, _ in side], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "kind": [k for _, _, k in side],
        })
        for side in sides
    )  # fmt: skip
    return own, others


def test_the_answer_is_that_of_tables(spark: SparkSession) -> None:
    own, others = keyed()
    frames = [spark.createDataFrame(each) for each in (own, others)]
    given: dict[str, Any] = {"max_offset": "60s", "by": "device", "match": "kind"}
    found = clock_errors(*frames, **given).orderBy("device").toArrow()
    with pytest.warns():
        wanted = clock_error_tables(own, others, **given)
    assert found.schema.names == wanted.schema.names
    assert found.cast(wanted.schema).equals(wanted)


def test_numbers_without_keys(spark: SparkSession) -> None:
    one = made(np.random.default_rng(2), 60, 100, 100, Truth(-4.0, 0.0, 0.003, 5000.0))
    own, others = (pa.table({"time": times / SECOND}) for times in (one.left, one.right))
    frames = [spark.createDataFrame(each) for each in (own, others)]
    options = CorrelateOptions(unit="s", tick="us")
    found = clock_errors(*frames, max_offset="60s", options=options).toArrow()
    wanted = clock_error_tables(own, others, max_offset="60s", options=options)
    assert found.cast(wanted.schema).equals(wanted)


def test_a_corrected_clock_is_for_one_process(spark: SparkSession) -> None:
    own, others = keyed()
    with pytest.warns():
        errors = clock_error_tables(own, others, max_offset="60s", by="device")
    frames = [spark.createDataFrame(each) for each in (own, others)]
    clock = corrected_clock("time", errors, by="device")
    with pytest.raises(ConditionError, match=r"corrected_clock.'time'. is a time of joins in one"):
        correlate(*frames, within="1s", confidence=0.5, left_time=clock, right_time="time")
