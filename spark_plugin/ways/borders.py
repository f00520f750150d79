"""Border crossings of DataFrames: packed by stream where files are only read, else row by row."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from coincide.engine.borders.arguments import READINGS, BorderArguments
from coincide.engine.borders.readings import ReadingColumns
from coincide.engine.borders.reports import Seen
from coincide.engine.files.footers import Footer
from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slice_join import PlannedFiles
from coincide.model.errors import CoincideError
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.borders import BorderPlan, ReadingFrame, plan_of_crossings
from spark_plugin.frames.columns import wire_kind
from spark_plugin.frames.keyed_rows import check_frame
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.frames.plain_files import found_files
from spark_plugin.tasks.borders import CrossingTask, ShippedQueries
from spark_plugin.tasks.packed_borders import PackedCrossingTask, ReadingKeyRows
from spark_plugin.ways.exchange.packed_keys import (
    ROWS_BY_SPARK,
    described,
    packs_of,
    plan_cells,
)

_log = logging.getLogger("coincide")


def plan_crossings(
    readings: Any,
    queries: Any,
    arguments: BorderArguments,
    *,
    observe: bool = False,
    packs: bool = True,
) -> BorderPlan:
    """Plan a search for border crossings. The queries are collected at once.

    With `packs`, tasks read the files themselves if the readings are nothing else.
    """
    check_frame(
        readings, READINGS, "border_crossing_tables",
        "and crossings of a stream can lie across micro-batches. Use border_crossing_streams.",
    )  # fmt: skip
    given = ReadingFrame.of(readings, arguments)
    check_distinct_names(arguments.made)
    check_workers(readings.sparkSession)
    kinds = given.stream_kind, given.rows.kind(arguments.time)
    found = _files_of(readings, given) if packs else None
    if found is not None:
        try:
            return plan_packed_crossings(
                readings.sparkSession, found, queries, given.columns, kinds, given.seen,
                observe=observe,
            )  # fmt: skip
        except NotDirect as closed:
            _log.debug("Spark reads the files of %s: %s", READINGS, closed)
    return plan_of_crossings(
        given.wire_rows(), queries, given.columns, CrossingTask, kinds, given.seen,
        observe=observe, way="exchange", why=ROWS_BY_SPARK,
    )  # fmt: skip


@dataclass(frozen=True)
class ReadingFiles:
    """Files of readings, their footers, and what makes readings of their rows."""

    files: PlannedFiles
    footers: Sequence[Footer]
    columns: ReadingColumns


def plan_packed_crossings(
    spark: SparkSession,
    found: ReadingFiles,
    queries: Any,
    columns: ReadingColumns,
    kinds: tuple[T.DataType, T.DataType],
    seen: Callable[[], Seen] | None,
    *,
    observe: bool,
    why: str = "",
) -> BorderPlan:
    """Crossings of files in any order, packed by stream: of streams and times of some types of Spark.

    Refused, by `NotDirect`, if a stream could have more rows than a task should hold.
    """
    stream = columns.arguments.stream
    rows = ReadingKeyRows(found.columns, wire_kind(kinds[0]))
    cells = plan_cells(spark, found.files, found.footers, rows, has_keys=stream is not None)

    def new_task(columns: ReadingColumns, queries: ShippedQueries) -> PackedCrossingTask:
        return PackedCrossingTask(rows, cells, columns.arguments, queries)

    told = described(cells, "rows" if stream is None else f"rows by {stream}")
    return plan_of_crossings(
        packs_of(spark, found.files, found.footers, rows, cells), queries, columns, new_task, kinds, seen,
        observe=observe, way="files", why=f"{told}{why}",
    )  # fmt: skip


def _files_of(readings: DataFrame, given: ReadingFrame) -> ReadingFiles | None:
    """The files that the readings only are; None if Spark has to read them."""
    if is_accelerated(readings.sparkSession):
        return None
    arguments = given.columns.arguments
    found = found_files(readings, READINGS, arguments.columns, [arguments.time])
    if found is None:
        return None
    files, footers = found
    try:
        columns = ReadingColumns.of(files.schema, arguments)
    except CoincideError as closed:  # types that Spark reads as others
        _log.debug("Spark reads the files of %s: %s", READINGS, closed)
        return None
    if columns.tick != given.columns.tick:
        return None
    return ReadingFiles(files, footers, columns)
