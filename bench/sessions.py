"""Spark sessions for experiments, and what to do with a frame in them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.events import Load
from bench.experiment import Bench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.model.options import Emit

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}
"""The same for every contestant; the rest is Spark's defaults, adaptive execution among them."""
_QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
"""Settings of quick runs, whose joins of few rows would wait for the compiler above all."""
_ENVIRONMENT = "spark.executorEnv."


@contextmanager
def spark_session(bench: Bench, more: Mapping[str, str] = {}) -> Iterator[SparkSession]:
    """A local session with more settings, stopped afterwards; they are noted, but no environments."""
    from spark_plugin.cluster.session import local_session

    master = f"local[{bench.cores}]"
    bench.say("starting Spark")
    settings = {**SETTINGS, **bench.pick({}, _QUICK), **more}
    noted = {name: value for name, value in settings.items() if not name.startswith(_ENVIRONMENT)}
    bench.note(master=master, spark=noted)
    spark = local_session(master, "bench", log=os.devnull, **settings)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def parquet_frames(
    bench: Bench, spark: SparkSession, load: Load
) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Both streams of a load as frames that read Parquet files ordered by time."""
    with tempfile.TemporaryDirectory(prefix="coincide-bench-") as folder:
        bench.say(f"writing {load.events:,} events a side")
        left, right = load.write(Path(folder))
        yield spark.read.parquet(str(left)), spark.read.parquet(str(right))


def any_frame(frame: DataFrame) -> DataFrame:
    """The same rows as what is no plain read of files any more, like any other DataFrame.

    Spark's optimizer knows that a column is what it is coalesced with nothing to, and computes nothing.
    """
    from pyspark.sql import functions as F

    return frame.select(*(F.coalesce(F.col(name)).alias(name) for name in frame.columns))


def consume(frame: DataFrame) -> None:
    """Compute all rows and drop them: Spark's ``noop`` sink."""
    frame.write.format("noop").mode("overwrite").save()


def rows_and_pairs(frame: DataFrame, emit: Emit) -> tuple[int, int]:
    """Number of rows of a join's output, and of the pairs that they stand for."""
    pairs = {"pairs": "count(*)", "counts": "sum(matches)", "lists": "sum(size(right_id))"}[emit]
    row = frame.selectExpr("count(*) AS n", f"coalesce({pairs}, 0) AS pairs").head()
    assert row is not None
    return row["n"], row["pairs"]
