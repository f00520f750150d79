"""Our side of the comparisons: the condition of every benchmark, in one process and on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from bench.events import Condition
from coincide import CorrelateOptions, TimingCondition, mutual_deadline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from coincide.model.options import Emit, Way


def timing_condition(condition: Condition) -> TimingCondition:
    """A bench's condition as Coincide's."""
    return TimingCondition(mutual_deadline(f"{condition.deadline_us}us"), condition.confidence)


def local_join(
    left: pa.Table,
    right: pa.Table,
    emit: Emit,
    threads: int,
    condition: Condition = Condition(),
    by: Sequence[str] = (),
) -> pa.Table:
    """Join tables of int64 microseconds in this process."""
    from coincide import correlate_tables

    options = CorrelateOptions(unit="us", threads=threads)
    condition_of_pairs = timing_condition(condition)
    return correlate_tables(left, right, condition_of_pairs, by=by, emit=emit, options=options)


def spark_files_join(
    left: DataFrame, right: DataFrame, emit: Emit, condition: Condition = Condition()
) -> DataFrame:
    """As `spark_join`, given the files that the frames read."""
    from coincide import correlate_files

    files = left.inputFiles(), right.inputFiles()
    found = correlate_files(left.sparkSession, *files, timing_condition(condition), emit=emit)
    return found  # type: ignore[return-value]


def spark_join(
    left: DataFrame,
    right: DataFrame,
    emit: Emit,
    condition: Condition = Condition(),
    *,
    way: Way = "auto",
) -> DataFrame:
    """Join frames of timestamps on Spark, with the default options but one."""
    from coincide import correlate

    options = CorrelateOptions(way=way)
    return correlate(left, right, timing_condition(condition), emit=emit, options=options)
