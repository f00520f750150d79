"""Rows by key that are only read from Parquet: tasks read their row groups, and pack rows by key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from coincide.engine.files.footers import Footer
from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import places_of
from coincide.model.errors import several
from spark_plugin.cluster.connect import parallelism
from spark_plugin.frames.plain_files import deals_of, rows_at_once, rows_of
from spark_plugin.tasks.labels import partition_labels
from spark_plugin.tasks.packed_keys import PACKS, SLICE, Cells, KeyPackTask, KeyRows
from spark_plugin.tasks.wire import LABEL

_LEAST_ROWS, _MOST_ROWS = 100_000, 2_000_000
"""Rows of a bucket: fewer do not pay a task, and more are in one only where a key has them."""
_SLICE_ROWS = 4_000_000
"""Rows of a slice of time, if they are spread evenly in it and all have one key."""


def plan_cells(
    spark: SparkSession,
    footers: Sequence[Footer],
    bounds: tuple[int, int] | None,
    *,
    has_keys: bool = True,
) -> Cells:
    """Buckets by the rows of files, and slices by the bounds of their times.

    Refused if these are not known, and one key could have more rows than a task should hold.
    """
    rows, tasks = rows_of(footers), parallelism(spark)
    buckets = max(1, -(-rows // _MOST_ROWS), min(tasks, rows // _LEAST_ROWS)) if has_keys else 1
    if buckets > tasks:  # whole waves, so that no core idles in the last one
        buckets = -(-buckets // tasks) * tasks
    if bounds is None:
        if rows > _SLICE_ROWS:
            raise NotDirect(
                f"times have no statistics in all row groups, so {rows:,} rows could not be cut by"
                " time. Write the files with statistics."
            )
        return Cells(buckets)
    return Cells(buckets, max(1, -(-rows // _SLICE_ROWS)), *bounds)


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
