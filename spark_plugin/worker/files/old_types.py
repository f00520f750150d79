"""Types of old timestamps in Parquet: INT96, and the calendar before Gregory's."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

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
