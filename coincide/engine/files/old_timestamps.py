"""Timestamps as Spark and Hive once wrote them: INT96, and the calendar before Gregory's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coincide.model.errors import DataError

_SAME_SINCE = datetime(1900, 1, 1)
"""Since then both calendars, and the zones of old and new clocks, agree."""


def int96_times(schema: pa.Schema, footers: Iterable[pq.FileMetaData]) -> list[str]:
    """Columns of times that some file holds as INT96; within lists and structs they stay microseconds."""
    old = frozenset().union(*map(int96_columns, footers))
    return [f.name for f in schema if f.name in old and pa.types.is_timestamp(f.type)]


def exact_instants(side: str, table: pa.Table, nanoseconds: pa.Table) -> pa.Table:
    """A table whose INT96 columns were read as microseconds, with what that has cut off."""
    for name in nanoseconds.column_names:
        whole, fine = table.column(name), nanoseconds.column(name)
        steps = [_numbers(column) for column in (whole, fine)]
        is_told = steps[1] // 1000 == steps[0]
        if not (is_told & (steps[1] % 1000 != 0)).any():
            continue
        if not is_told.all():
            raise DataError(
                f"{side}: {name}, which is INT96, has times finer than microseconds, and also"
                " years that nanoseconds cannot count. Write it in microseconds."
            )
        kind = pa.timestamp("ns", "UTC")
        table = table.set_column(table.schema.get_field_index(name), name, fine.cast(kind))
    return table


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    return pc.fill_null(column.cast(pa.int64()), 0).to_numpy()


def check_calendar(side: str, table: pa.Table, footers: Iterable[pq.FileMetaData]) -> None:
    """Refuse times of the old calendar that differ in the new one."""
    if not any(map(is_of_the_old_calendar, footers)):
        return
    for name in (f.name for f in table.schema if holds_dates(f.type)):
        first = _first(table.column(name))
        if first is not None and first < _SAME_SINCE:
            raise DataError(
                f"{side}: {name} has times before 1900 that Spark wrote in the old calendar, and"
                " only Spark reads these right. Join with Spark, or write the files again with"
                " spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED."
            )


def _first(column: pa.ChunkedArray) -> datetime | None:
    """The earliest date or time of a column, also within its lists and structs."""
    dated = [leaf for chunk in column.chunks for leaf in _leaves(chunk) if holds_dates(leaf.type)]
    firsts = [pc.min(leaf.cast(pa.timestamp("s"), safe=False)).as_py() for leaf in dated]
    return min((first.replace(tzinfo=None) for first in firsts if first), default=None)


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """An array, or those that its lists and structs are made of."""
    if pa.types.is_map(values.type):
        inner = [values.keys, values.items]
    elif pa.types.is_nested(values.type):
        flat = values.flatten()
        inner = flat if isinstance(flat, list) else [flat]
    else:
        yield values
        return
    for part in inner:
        yield from _leaves(part)


_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def is_of_the_old_calendar(footer: pq.FileMetaData) -> bool:
    """Whether Spark rebases times before 1900 that it reads from a file."""
    told = footer.metadata or {}
    version = told.get(b"org.apache.spark.version", b"").partition(b".")[0]
    return any(mark in told for mark in _OLD_CALENDAR) or (version.isdigit() and int(version) < 3)


def int96_columns(footer: pq.FileMetaData) -> frozenset[str]:
    """Columns that are INT96, or hold such within lists or structs."""
    columns = (footer.schema.column(i) for i in range(len(footer.schema)))
    paths = {column.path for column in columns if column.physical_type == "INT96"}
    return frozenset(paths | {path.partition(".")[0] for path in paths})


def holds_dates(kind: pa.DataType) -> bool:
    """Whether values are dates or instants, or lists or structs that hold such."""
    if pa.types.is_nested(kind):
        return any(holds_dates(kind.field(i).type) for i in range(kind.num_fields))
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def with_instants(schema: pa.Schema, old: frozenset[str]) -> pa.Schema:
    """The schema of a file with these columns of INT96, which names no zone, but is an instant."""
    fields = [f.with_type(_instants(f.type)) if f.name in old else f for f in schema]
    return pa.schema(fields, metadata=schema.metadata)


def _instants(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC")
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_instants(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(_instants(kind.key_type), _instants(kind.item_type))
    return pa.list_(_instants(kind.value_type)) if pa.types.is_list(kind) else kind
