"""Border crossings of Parquet files on Spark, by tasks that each read streams of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from coincide.engine.borders.arguments import READINGS, BorderArguments
from coincide.engine.borders.readings import ReadingColumns
from coincide.engine.borders.reports import Seen
from coincide.engine.files.common_schema import check_alike, check_present
from coincide.engine.files.finding import Given, ParquetFiles, find_files
from coincide.engine.files.footers import (
    Footer,
    Stored,
    file_schemas,
    read_footers,
)
from coincide.engine.files.old_timestamps import holds_dates
from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.stream_parts import AIMED_ROWS, StreamParts, aimed_rows, stream_parts
from coincide.model.errors import SchemaError, marked
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.borders import BorderPlan, plan_of_crossings
from spark_plugin.frames.columns import check_microseconds, spark_type
from spark_plugin.frames.output_columns import check_distinct_names
from spark_plugin.tasks.border_files import PartTask, StreamFiles
from spark_plugin.tasks.borders import ShippedQueries
from spark_plugin.ways.borders import ReadingFiles, plan_packed_crossings

_MOST_READS = 2.0
"""How often a row may be read, on average."""
_TOO_LARGE = 2
"""How many times as many rows as it should have are too many for a part: one task has them in memory."""


def plan_file_crossings(
    spark: SparkSession,
    readings: Given,
    queries: Any,
    arguments: BorderArguments,
    seen: Callable[[], Seen] | None = None,
) -> BorderPlan:
    """Plan a search for the border crossings of Parquet files that tasks read themselves."""
    if arguments.stream is None:
        raise NotDirect(f"all {READINGS} belong to one stream, and a task reads whole streams.")
    found = _readable(find_files(READINGS, readings), arguments)
    check_workers(spark)
    schema = found.files.schema
    stream, time = (
        spark_type(name, schema.field(name).type) for name in (arguments.streams[0], arguments.time)
    )
    try:
        planned = _in_parts(found, arguments, parallelism(spark))
    except NotInOrder as closed:
        return plan_packed_crossings(
            spark, found, queries, found.columns, (stream, time), seen,
            observe=True, why=f", since {closed.why}",
        )  # fmt: skip
    count = len(planned.parts)

    def new_task(columns: ReadingColumns, queries: ShippedQueries) -> PartTask:
        return PartTask(StreamFiles(planned.files, planned.parts, columns), queries)

    return plan_of_crossings(
        spark.range(0, count, 1, count), queries, planned.columns, new_task, (stream, time), seen,
        observe=True, way="files", why=planned.parts.describe(),
    )  # fmt: skip


class NotInOrder(NotDirect):
    """Files that a task cannot read by streams; `why` says it in a few words."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


def _planned_files(files: ParquetFiles, arguments: BorderArguments, tasks: int) -> StreamFiles:
    return _in_parts(_readable(files, arguments), arguments, tasks)


def _readable(files: ParquetFiles, arguments: BorderArguments) -> ReadingFiles:
    """Files that PyArrow reads as Spark does."""
    names = arguments.columns
    footers = read_footers(files, [arguments.streams[0], arguments.time], names)
    check_present(files.side, file_schemas(files, footers), names)
    schema = footers[0].schema
    columns = ReadingColumns.of(schema, arguments)
    check_distinct_names(arguments.made)
    check_microseconds(columns.scale)
    try:
        check_alike(files.side, file_schemas(files, footers), names)
    except SchemaError as error:
        raise NotDirect(marked(error)) from None  # Spark reads some of these as one type
    _check_types(files, footers, columns)
    return ReadingFiles(PlannedFiles.of(files, schema, footers), footers, columns)


def _in_parts(found: ReadingFiles, arguments: BorderArguments, tasks: int) -> StreamFiles:
    """The parts of files whose row groups hold few streams each."""
    stream = arguments.streams[0]
    parts = stream_parts(found.footers, stream, tasks)
    if parts is None:
        why = f"row groups have no statistics of {stream}"
        raise NotInOrder(f"{READINGS}: {why}. Write the files with statistics.", why)
    _check_order(parts, arguments, tasks)
    return StreamFiles(found.files, parts, found.columns)


def _check_types(files: ParquetFiles, footers: list[Footer], columns: ReadingColumns) -> None:
    """Refuse what Spark would not read as PyArrow does, or not at all."""
    arguments, schema = columns.arguments, footers[0].schema
    stored = {footer.ranges[arguments.streams[0]][0] for footer in footers}
    if len(stored) > 1 or not all(one is not None and _is_label(one) for one in stored):
        raise NotDirect(
            f"{READINGS}.{arguments.streams[0]} is not an integer or a text in all files. Cast it."
        )
    for name in arguments.columns:
        kind = schema.field(name).type
        old = any(
            name in footer.int96 or (footer.old_calendar and holds_dates(kind))
            for footer in footers
        )
        if old or _is_unlike(kind):
            raise NotDirect(
                f"{READINGS}.{name} has a type that only Spark reads its own way (found {kind})."
            )
    for name in (arguments.streams[0], arguments.time):
        try:
            spark_type(name, schema.field(name).type)
        except SchemaError as error:
            raise NotDirect(marked(error)) from None


def _is_label(stored: Stored) -> bool:
    is_number = stored.family == "integer" and stored.most < 2**63  # Spark has no uint64
    return stored.family == "text" or (is_number and stored.nanoseconds is None)


def _is_unlike(kind: pa.DataType) -> bool:
    """Whether Spark reads a type as another, or not at all."""
    unit = kind.unit if pa.types.is_timestamp(kind) else "us"
    return pa.types.is_unsigned_integer(kind) or pa.types.is_float16(kind) or unit != "us"


def _check_order(parts: StreamParts, arguments: BorderArguments, tasks: int) -> None:
    """Refuse files of which a part would be too large, or rows be read too often."""
    rows = int(parts.places.rows.sum())
    most = int(parts.rows.max(initial=0))
    aimed = aimed_rows(rows, tasks)
    # Large row groups give few parts, which are still sooner read than exchanged.
    is_whole = len(parts) == 1 and rows >= _TOO_LARGE * aimed
    if is_whole or parts.reads > _MOST_READS or most >= _TOO_LARGE * AIMED_ROWS:
        stream = arguments.streams[0]
        ordered = f'df.sort("{stream}", "{arguments.time}").write.parquet("ordered")'
        why = f"the files are not in order of {stream}, or have too large row groups"
        raise NotInOrder(
            f"{READINGS}: {why}. A task would read {most:,} rows where it should read {aimed:,},"
            f" and each row would be read {parts.reads:.1f} times on average. Order the files once,"
            f" for example by {ordered}, and they are read without an exchange.",
            why,
        )
