"""The Parquet files of a side that only reads such: found, checked, and dealt to whoever reads them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from coincide.engine.events.schemas import plain_schema
from coincide.engine.files.common_schema import check_alike, check_present
from coincide.engine.files.finding import local_files
from coincide.engine.files.footers import Footer, file_schemas, read_footers
from coincide.engine.files.planning import NotDirect, check_readable
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, Places
from coincide.model.errors import CoincideError
from spark_plugin.frames.coarse_times import refuse_beyond_microseconds
from spark_plugin.frames.columns import arrow_schema, field_of, spark_type
from spark_plugin.frames.events import EventFrame
from spark_plugin.frames.plain_reads import plain_read

_log = logging.getLogger("coincide")
_TASK_ROWS = 1 << 22
"""Rows that a task reads, at most about."""
_AT_ONCE, _BYTES = 1 << 20, 64 << 20
"""Rows and bytes that are read at once, or one row group."""
_STAMPS = T.TimestampType, T.TimestampNTZType
Files = tuple[PlannedFiles, list[Footer]]
"""The files of a side, and their footers."""


def files_of(side: EventFrame) -> Files | None:
    """The files that a side only reads, where PyArrow reads what Spark does; looked for once a plan."""
    name = tuple(side.needed)
    if name not in side.memo:
        side.memo[name] = _found(side)
    found: Files | None = side.memo[name]
    return found


def _found(side: EventFrame) -> Files | None:
    times = [scale.column.name for scale in side.times.scales]
    return found_files(side.plain, side.called, side.needed, times)


def found_files(
    frame: DataFrame, called: str, needed: Sequence[str], ranged: Sequence[str]
) -> Files | None:
    """`files_read`, or None where Spark has to read the files."""
    try:
        return files_read(frame, called, needed, ranged)
    except CoincideError as closed:  # Spark reads it, and says what is wrong
        _log.debug("Spark reads the files of %s: %s", called, closed)
        return None


def files_read(
    frame: DataFrame, called: str, needed: Sequence[str], ranged: Sequence[str]
) -> Files:
    """The files that a DataFrame only reads, whose footers have the ranges of some columns.

    An error says why Spark has to read them.
    """
    read = plain_read(frame, needed)
    if read is None:
        raise NotDirect(f"{called} must be nothing but a read of Parquet files of this machine.")
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    files = replace(local_files(called, read.paths), names=read.names)
    stamps = [name for name in needed if isinstance(kinds[name], _STAMPS)]
    footers = read_footers(files, list(dict.fromkeys([*stamps, *ranged])), needed)
    schemas = file_schemas(files, footers)
    check_present(called, schemas, needed)
    if not set(needed) <= set(footers[0].schema.names):
        raise NotDirect("files have no column of this name.")
    check_alike(called, schemas, needed)
    for path, footer in zip(files.paths, footers, strict=True):
        check_readable(f"{called}: {path}", footer, needed)
    refuse_beyond_microseconds(files, footers, stamps, "read it by another way")
    _check_types(footers[0], {name: kinds[name] for name in needed})
    return PlannedFiles.of(files, plain_schema(footers[0].schema), footers), footers


def _check_types(footer: Footer, kinds: Mapping[str, T.DataType]) -> None:
    """Refuse what Spark reads as something else than the file says: the reader was given a schema."""
    for name, own in kinds.items():
        if own != spark_type(name, footer.schema.field(name).type):
            raise NotDirect(
                f"Spark reads the column {name!r} as {own.simpleString()}, not as stored."
            )


def spark_schema(side: EventFrame, names: Sequence[str]) -> pa.Schema:
    """Some columns of a side, as Spark hands them to Arrow."""
    fields = [field_of(side.plain, side.called, name) for name in names]
    return arrow_schema(T.StructType(fields))


def rows_of(footers: Sequence[Footer]) -> int:
    """How many rows files have."""
    return sum(int(footer.rows.sum()) for footer in footers)


def rows_at_once(footers: Sequence[Footer]) -> int:
    """Rows of files that are read at once, about."""
    rows = rows_of(footers)
    size = sum(footer.bytes for footer in footers)
    return max(1, min(_AT_ONCE, int(_BYTES * rows / max(size, 1.0))))


def deals_of(places: Places, tasks: int) -> tuple[Parts, ...]:
    """Row groups, dealt in their order to tasks of about as many rows each."""
    total = int(places.rows.sum())
    count = max(1, min(len(places), max(tasks, -(-total // _TASK_ROWS))))
    ends = np.cumsum(places.rows)
    dealt = np.minimum((ends - places.rows) * count // max(total, 1), count - 1)
    edges = np.searchsorted(dealt, np.arange(count + 1))
    return tuple(
        Parts.whole(places.take(np.arange(first, last))) for first, last in pairwise(edges)
    )
