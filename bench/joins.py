"""Our side of the comparisons: the condition of every benchmark, in one process and on Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from bench.events import CONFIDENCE, DEADLINE_US
from event_model import CorrelateOptions, TimingCondition, mutual_deadline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from event_model.options import Emit

CONDITION = TimingCondition(mutual_deadline(f"{DEADLINE_US}us"), CONFIDENCE)


def local_join(left: pa.Table, right: pa.Table, emit: Emit, threads: int) -> pa.Table:
    """Join tables of int64 microseconds in this process."""
    from spark_plugin import correlate_tables

    options = CorrelateOptions(unit="us", threads=threads)
    return correlate_tables(left, right, CONDITION, emit=emit, options=options)


def spark_join(left: DataFrame, right: DataFrame, emit: Emit) -> DataFrame:
    """Join frames of timestamps on Spark, with the default options."""
    from spark_plugin import correlate

    return correlate(left, right, CONDITION, emit=emit)
