"""Joins of several densities, ways and shapes: as jobs of Spark, and in one process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.events import Condition
from bench.gpu.works import Work
from bench.joins import timing_condition
from coincide import CorrelateOptions, correlate, correlate_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from coincide.model.options import Backend, Emit, Way

Frames = tuple["DataFrame", "DataFrame"]

SPARSE, DENSE, CROWDED = "sparse", "dense", "many candidates"
WORKS = {
    SPARSE: (Work(2_000_000, rate=4.0), Work(2000, rate=4.0)),
    DENSE: (Work(200_000, rate=100.0), Work(800, rate=100.0)),
    CROWDED: (Work(500_000, rate=4000.0), Work(600, rate=600.0)),
}
"""Both streams, and those of quick runs: each left event has some 4, 100 and 4,000 candidates."""
JOINS: tuple[tuple[str, Way, Emit], ...] = (
    *((SPARSE, way, "pairs") for way in ("exchange", "broadcast", "broadcast-both", "files")),
    *((DENSE, way, "pairs") for way in ("exchange", "files")),
    *((SPARSE, way, "counts") for way in ("exchange", "files")),
    *((CROWDED, "exchange", emit) for emit in ("counts", "best")),
    *((CROWDED, "files", emit) for emit in ("counts", "best", "aggregates")),
)
"""Stream, way and shape of each join."""
AGGREGATES = {"n": "count", "total": ("value", "sum"), "greatest": ("value", "max")}
_ROW_GROUPS = 16


def sides(work: Work) -> tuple[pa.Table, pa.Table]:
    """Both streams; right events have a value."""
    left, right = work.tables()
    value = np.random.default_rng(5).exponential(1e3, right.num_rows)
    return left, right.append_column("value", pa.array(value))


def in_files(spark: SparkSession, folder: Path, left: pa.Table, right: pa.Table) -> Frames:
    """Both sides as frames that read Parquet files."""
    folder.mkdir()
    frames = []
    for name, table in (("left", left), ("right", right)):
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, row_group_size=max(1, -(-table.num_rows // _ROW_GROUPS)))
        frames.append(spark.read.parquet(str(path)))
    return frames[0], frames[1]


def spark_job(frames: Frames, way: Way, emit: Emit, backend: Backend = "cpu") -> DataFrame:
    """A join on Spark."""
    options = CorrelateOptions(unit="us", way=way)
    condition = timing_condition(Condition())
    return correlate(*frames, condition, backend=backend, options=options, **_asked(emit))


def join_alone(tables: tuple[pa.Table, pa.Table], emit: Emit, threads: int) -> pa.Table:
    """The same join in this process, by the CPU."""
    options = CorrelateOptions(unit="us", threads=threads)
    return correlate_tables(*tables, timing_condition(Condition()), options=options, **_asked(emit))


def _asked(emit: Emit) -> dict[str, Any]:
    more = {"aggregates": AGGREGATES} if emit == "aggregates" else {}
    return {"emit": emit, "probability": emit in ("pairs", "best"), **more}
