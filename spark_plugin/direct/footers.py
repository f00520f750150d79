"""What the footers of Parquet files tell: row groups, and when their events are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq

from event_model.errors import SchemaError
from event_model.units import NANOSECONDS_PER_UNIT
from spark_plugin.direct.files import ParquetFiles
from spark_plugin.tables import plain_type
from spark_plugin.time_columns import TimeScale

_THREADS = 16
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file.

    Parameters
    ----------
    file : int
        Index into the paths of its side.
    index : int
        In the file.
    rows : int
    first, last : int or None
        No min_time is earlier, no max_time later, ticks; None: there are no times but nulls.
    is_known : bool
        Whether `first` and `last` are told by statistics.
    """

    file: int
    index: int
    rows: int
    first: int | None
    last: int | None
    is_known: bool


def read_footers(files: ParquetFiles) -> list[pq.FileMetaData]:
    """The footers of all files of a side, in their order, read in parallel.

    Raises
    ------
    DataError
        If a file cannot be read; it is named.
    """

    def footer(path: str) -> pq.FileMetaData:
        with files.reading(path), files.filesystem.open_input_file(path) as source:
            return pq.read_metadata(source)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(footer, files.paths))


def common_schema(files: ParquetFiles, footers: Sequence[pq.FileMetaData]) -> pa.Schema:
    """Names and types of the columns of the first file."""
    with files.reading(files.paths[0]):
        return _with_instants(footers[0])


def file_schemas(
    files: ParquetFiles, footers: Sequence[pq.FileMetaData]
) -> list[tuple[str, pa.Schema]]:
    """Path and schema of each file.

    Raises
    ------
    DataError
        If Arrow has no type for a column.
    """
    found = []
    for path, footer in zip(files.paths, footers, strict=True):
        with files.reading(path):
            found.append((path, _with_instants(footer)))
    return found


def int96_columns(footer: pq.FileMetaData) -> set[str]:
    """Columns of Spark's old timestamps, which cover years that nanoseconds cannot count.

    Columns that hold such within lists or structs are told by their own names too.
    """
    columns = (footer.schema.column(i) for i in range(len(footer.schema)))
    paths = {column.path for column in columns if column.physical_type == "INT96"}
    return paths | {path.partition(".")[0] for path in paths}


def _with_instants(footer: pq.FileMetaData) -> pa.Schema:
    """The schema of a file; INT96 names no zone, but is an instant."""
    schema, old = footer.schema.to_arrow_schema(), int96_columns(footer)
    instant = pa.timestamp("us", "UTC")
    return pa.schema(
        [
            f.with_type(instant) if f.name in old and pa.types.is_timestamp(f.type) else f
            for f in schema
        ]
    )


def check_alike(
    files: ParquetFiles, footers: Sequence[pq.FileMetaData], schema: pa.Schema, names: list[str]
) -> None:
    """Refuse files in which a needed column, which all have, is of another type than in the first.

    Raises
    ------
    SchemaError
        That names the file.
    """
    for path, found in file_schemas(files, footers):
        for name in names:
            kind, wanted = plain_type(found.field(name).type), plain_type(schema.field(name).type)
            if kind != wanted:
                raise SchemaError(
                    f"{files.side}: the column {name!r} is {kind} in {path} and {wanted} in"
                    f" {files.paths[0]}; write the files with one type"
                )


def row_groups(
    footers: Sequence[pq.FileMetaData], scales: tuple[TimeScale, TimeScale]
) -> list[RowGroup]:
    """All row groups of a side, those without rows left out.

    Parameters
    ----------
    footers : sequence of FileMetaData
    scales : (TimeScale, TimeScale)
        Of the min and the max column.
    """
    groups = []
    for file, footer in enumerate(footers):
        places = [_place(footer, scale) for scale in scales]
        for index in range(footer.num_row_groups):
            group = footer.row_group(index)
            if group.num_rows:
                first = _bound(group.column(places[0][0]), places[0][1], math.floor, "min_raw")
                last = _bound(group.column(places[1][0]), places[1][1], math.ceil, "max_raw")
                groups.append(_row_group(file, index, group.num_rows, first, last))
    return groups


_UNKNOWN = object()


def _row_group(file: int, index: int, rows: int, first: object, last: object) -> RowGroup:
    known = first is not _UNKNOWN and last is not _UNKNOWN
    if not known or first is None or last is None:
        # Where one end of every interval is null, nothing can match.
        return RowGroup(file, index, rows, None, None, known)
    assert isinstance(first, int)
    assert isinstance(last, int)
    return RowGroup(file, index, rows, first, last, True)


def _place(footer: pq.FileMetaData, scale: TimeScale) -> tuple[int, Fraction]:
    """Where a time column is, and ticks per step of its statistics."""
    schema = footer.schema
    names = [schema.column(i).path for i in range(len(schema))]
    place = names.index(scale.column.name)
    stored = schema.column(place).logical_type
    if scale.column.nanoseconds is None or stored.type != "TIMESTAMP":
        return place, scale.factor
    # Parquet has fewer units than Arrow: what is stored may be finer than what is read.
    unit = next(u for word, u in _UNITS.items() if word in stored.to_json())
    tick = Fraction(scale.column.nanoseconds) / scale.factor
    return place, Fraction(NANOSECONDS_PER_UNIT[unit]) / tick


def _bound(chunk: pq.ColumnChunkMetaData, factor: Fraction, rounded, end: str) -> object:  # type: ignore[no-untyped-def]
    """An end of a column's values in ticks; None if all are null, `_UNKNOWN` if nothing tells."""
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return _UNKNOWN
    if not statistics.has_min_max:
        all_null = statistics.has_null_count and statistics.null_count == chunk.num_values
        return None if all_null else _UNKNOWN
    raw = getattr(statistics, end)
    if isinstance(raw, int) or (isinstance(raw, float) and math.isfinite(raw)):
        return int(rounded(Fraction(raw) * factor))
    return _UNKNOWN
