"""Sides of an exchange that only read Parquet: tasks read their row groups, and pack them at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.schemas import plain_schema, with_like_keys
from coincide.engine.files.common_schema import check_alike, check_present
from coincide.engine.files.finding import find_files
from coincide.engine.files.footers import Footer, file_schemas, read_footers
from coincide.engine.files.planning import NotDirect, check_readable
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, places_of
from coincide.engine.join.join import TablePlan, plan_tables
from coincide.engine.join.pair_arguments import PairArguments
from coincide.model.errors import CoincideError
from spark_plugin.cluster.connect import parallelism
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.coarse_times import refuse_beyond_microseconds
from spark_plugin.frames.columns import arrow_schema, field_of, spark_type
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_reads import plain_read
from spark_plugin.tasks.packed_files import COUNTS, FilePackTask, names_of_counts
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.wire import WireLayout

_log = logging.getLogger("coincide")
_TASK_ROWS = 1 << 22
"""Rows that a task reads, at most about."""
_AT_ONCE, _BYTES = 1 << 20, 64 << 20
"""Rows and bytes that a task reads at once, or one row group."""
_STAMPS = T.TimestampType, T.TimestampNTZType
Files = tuple[PlannedFiles, list[Footer]]
"""The files of a side, and their footers."""


@dataclass(frozen=True)
class FileSide:
    """The files of a side, and what makes events of their rows."""

    files: PlannedFiles
    tables: TablePlan
    footers: list[Footer]

    @property
    def at_once(self) -> int:
        """Rows that a task reads at once, about."""
        rows = sum(int(footer.rows.sum()) for footer in self.footers)
        size = sum(footer.bytes for footer in self.footers)
        return max(1, min(_AT_ONCE, int(_BYTES * rows / max(size, 1.0))))

    def deals(self, tasks: int) -> tuple[Parts, ...]:
        """All row groups, dealt in their order to tasks of about as many rows each."""
        places = places_of(self.footers)
        total = int(places.rows.sum())
        count = max(1, min(len(places), max(tasks, -(-total // _TASK_ROWS))))
        ends = np.cumsum(places.rows)
        dealt = np.minimum((ends - places.rows) * count // max(total, 1), count - 1)
        edges = np.searchsorted(dealt, np.arange(count + 1))
        return tuple(
            Parts.whole(places.take(np.arange(first, last))) for first, last in pairwise(edges)
        )


def file_sides(
    sides: tuple[EventFrame, EventFrame],
    arguments: PairArguments,
    found: Sequence[Files | None] | None = None,
) -> list[FileSide | None]:
    """What tasks read themselves of both sides; None of one whose rows come through Spark."""
    # `found`: their files, if they were looked for.
    nothing: list[FileSide | None] = [None, None]
    if is_accelerated(sides[0].spark) or arguments.is_one_stream:
        return nothing
    found = [files_of(side) for side in sides] if found is None else found
    # Tasks of both sides must hash keys alike.
    if not any(found) or (sides[0].by and not all(found)):
        return nothing
    own = [
        _schema_of(side) if given is None else given[0].schema
        for side, given in zip(sides, found, strict=True)
    ]
    schemas = with_like_keys(own, arguments.keys, arguments.right_keys)
    try:
        tables = plan_tables(schemas[0], schemas[1], arguments)
    except CoincideError as closed:  # types of keys that are one to Spark, and two to Arrow
        _log.debug("correlate: Spark reads the files: %s", closed)
        return nothing
    if tables.tick != sides[0].times.scales[0].tick:
        return nothing
    planned = [
        None
        if given is None or not _are_needed(side, tables, i)
        else FileSide(replace(given[0], schema=schemas[i]), tables, given[1])
        for i, (side, given) in enumerate(zip(sides, found, strict=True))
    ]
    return nothing if sides[0].by and not all(planned) else planned


def _are_needed(side: EventFrame, tables: TablePlan, number: int) -> bool:
    """Whether the columns of a plan of files are those that tasks need."""
    of_plan = tables.by[number], tables.payload[number], tables.tested[number]
    return of_plan == (side.by, side.payload, side.tested)


def _schema_of(side: EventFrame) -> pa.Schema:
    fields = [field_of(side.plain, side.called, name) for name in side.needed]
    return arrow_schema(T.StructType(fields))


def files_of(side: EventFrame) -> Files | None:
    """The files that a side only reads, where PyArrow reads what Spark does."""
    read = plain_read(side.plain, side.needed)
    if read is None:
        return None
    try:
        files = replace(find_files(side.called, read.paths), names=read.names)
        stamps = [name for name in side.needed if isinstance(side.kind_of(name), _STAMPS)]
        times = [scale.column.name for scale in side.times.scales]
        footers = read_footers(files, list(dict.fromkeys([*stamps, *times])), side.needed)
        schemas = file_schemas(files, footers)
        check_present(side.called, schemas, side.needed)
        if not set(side.needed) <= set(footers[0].schema.names):
            raise NotDirect("files have no column of this name.")
        check_alike(side.called, schemas, side.needed)
        for path, footer in zip(files.paths, footers, strict=True):
            check_readable(f"{side.called}: {path}", footer, side.needed)
        refuse_beyond_microseconds(files, footers, stamps, "read it by another way")
        _check_types(side, footers[0])
    except CoincideError as closed:  # Spark reads it, and says what is wrong
        _log.debug("correlate: Spark reads the files of %s: %s", side.called, closed)
        return None
    return PlannedFiles.of(files, plain_schema(footers[0].schema), footers), footers


def _check_types(side: EventFrame, footer: Footer) -> None:
    """Refuse what Spark reads as something else than the file says: the reader was given a schema."""
    for name in side.needed:
        own, of_file = side.kind_of(name), spark_type(name, footer.schema.field(name).type)
        if own != of_file:
            raise NotDirect(
                f"Spark reads the column {name!r} as {own.simpleString()}, not as stored."
            )


def packs_of_files(
    spark: SparkSession,
    side: EventFrame,
    given: FileSide,
    pack: PackTask,
    layout: WireLayout,
    columns: str,
    *,
    keeps_unmatched: bool,
    has_salt: bool,
) -> DataFrame:
    """Packs of a side, whose tasks read its files; its rows are counted on their way if it is observed."""
    deals = given.deals(parallelism(spark))
    task = FilePackTask(
        pack, given.files, given.tables, deals, layout, keeps_unmatched=keeps_unmatched,
        at_once=given.at_once, up_to=side.up_to, has_salt=has_salt,
        counts=side.observation is not None,
    )  # fmt: skip
    numbers = spark.range(0, len(deals), 1, len(deals))
    if side.observation is None:
        return numbers.mapInArrow(task, columns)
    packs = numbers.mapInArrow(task, f"{columns}, {COUNTS} array<double>")
    totals = [
        F.expr(
            f"max({COUNTS}[{i}])" if name == "rounded" else f"CAST(sum({COUNTS}[{i}]) AS BIGINT)"
        ).alias(name)
        for i, name in enumerate(names_of_counts())
    ]
    observed = packs.observe(side.observation, *totals)
    return observed.where(f"{COUNTS} IS NULL").drop(COUNTS)
