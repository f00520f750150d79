"""Rows by key that are only read from Parquet: tasks read their row groups, and pack rows by key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from coincide.engine.files.footers import Footer
from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, places_of
from coincide.model.errors import DataError, several
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.jobs import BYTES_SETTING, bounds_batch_bytes
from spark_plugin.frames.plain_files import deals_of, rows_at_once, rows_of
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packed_keys import PACKS, SLICE, Cells, KeyPackTask, KeyRows
from spark_plugin.tasks.wire import LABEL

_LEAST_ROWS, _MOST_ROWS = 100_000, 2_000_000
"""Rows of a bucket: fewer do not pay a task, and more are in one only where a key has them."""
_SLICE_ROWS = 4_000_000
"""Rows of a slice of time, about, if all have one key."""


_MOST_BYTES = 1 << 30
"""Bytes of rows that may come in one batch, if one key has them all and nothing bounds a batch."""
_SAMPLED_GROUPS, _SAMPLED_ROWS, _SAMPLE = 32, 1 << 21, 1 << 12
"""Row groups that are looked at to cut time, their rows at most, about, and how many of each count."""


def plan_cells(
    spark: SparkSession,
    files: PlannedFiles,
    footers: Sequence[Footer],
    rows: KeyRows,
    *,
    has_keys: bool = True,
) -> Cells:
    """Buckets by the rows of files, and slices of about as many rows, if one key could have too many.

    Refused if a batch of one key could be too large.
    """
    count, tasks = rows_of(footers), parallelism(spark)
    buckets = max(1, -(-count // _MOST_ROWS), min(tasks, count // _LEAST_ROWS)) if has_keys else 1
    if buckets > tasks:  # whole waves, so that no core idles in the last one
        buckets = -(-buckets // tasks) * tasks
    slices = max(1, -(-count // _SLICE_ROWS))
    if slices == 1:
        return Cells(buckets)
    size = sum(footer.bytes for footer in footers)
    if size > _MOST_BYTES and not bounds_batch_bytes(spark):
        raise NotDirect(
            f"a task could get {size / 1e9:,.1f} GB in one batch, if one key has most rows. On Spark"
            f" 4.1 set {BYTES_SETTING} to 64m."
        )
    return Cells(buckets, edges_of(files, footers, rows, slices))


def edges_of(
    files: PlannedFiles, footers: Sequence[Footer], rows: KeyRows, slices: int
) -> np.ndarray:
    """Where slices of about as many rows begin, by the times of some row groups: int64 array."""
    places = places_of(footers)
    most = max(1, _SAMPLED_ROWS * len(places) // max(1, rows_of(footers)))
    some = np.linspace(0, len(places) - 1, min(len(places), most, _SAMPLED_GROUPS)).astype(np.int64)
    sample = [np.empty(0, np.int64)]
    for group in np.unique(some):
        table = files.read(Parts.whole(places.take(np.array([group]))), rows.needed, threads=True)
        try:
            times = rows.times_of(rows.read(table)[0])
        except DataError:  # tasks tell of invalid rows
            continue
        sample.append(times[:: 1 + times.size // _SAMPLE])
    times = np.sort(np.concatenate(sample))
    if not times.size:
        return times
    return np.unique(times[np.arange(1, slices) * times.size // slices])


def packs_of(
    spark: SparkSession,
    files: PlannedFiles,
    footers: Sequence[Footer],
    rows: KeyRows,
    cells: Cells,
) -> DataFrame:
    """The packs of files, each bucket in a partition."""
    deals = deals_of(places_of(footers), parallelism(spark))
    task = KeyPackTask(
        files, rows, cells, partition_labels(cells.buckets), deals, rows_at_once(footers)
    )
    numbers = spark.range(0, len(deals), 1, len(deals))
    packs = numbers.mapInArrow(task, PACKS).repartition(cells.buckets, LABEL)
    return packs.sortWithinPartitions(SLICE) if cells.slices > 1 else packs


def described(cells: Cells, what: str) -> str:
    """In words how rows get to where they are needed."""
    return f"tasks read the files and pack {what}, {several(cells.buckets, 'bucket')}"


ROWS_BY_SPARK = "rows come through Spark"
"""What is said of rows that tasks do not read."""
