"""What planning needs of the footers of Parquet files; a footer itself may be large, and is let go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coincide.errors import SchemaError
from spark_plugin.ways.files.bounds import Range, Stored, ranges
from spark_plugin.ways.files.stamps import FileStamp, open_footer, stamp_of
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.files.column_names import ColumnNames
from spark_plugin.worker.files.file_names import lacks_name, with_name
from spark_plugin.worker.files.finding import ParquetFiles
from spark_plugin.worker.files.old_types import (
    int96_columns,
    is_of_the_old_calendar,
    with_instants,
)

_THREADS = 16


@dataclass(frozen=True, eq=False)
class Footer:
    """What the footer of one file tells.

    Parameters
    ----------
    schema : pa.Schema
        Names and types; INT96 is an instant.
    int96 : frozenset of str
        Columns of Spark's old timestamps, which cover years that nanoseconds cannot count; also those
        that hold such within lists or structs.
    old_calendar : bool
        Whether times before 1900 are of the calendar that Spark had before version 3.
    index, rows : int64 arrays, shape (groups,)
        Of its row groups, those without rows left out: which of the file's, and how many rows.
    ranges : dict of str to (Stored or None, list of Range or None)
        Of the columns that were asked for, as `spark_plugin.ways.files.bounds.ranges`.
    bytes : float
        Of its rows in the needed columns, before they were compressed, about.
    stamp : FileStamp
    """

    schema: pa.Schema
    int96: frozenset[str]
    old_calendar: bool
    index: np.ndarray
    rows: np.ndarray
    ranges: dict[str, tuple[Stored | None, list[Range | None]]]
    bytes: float
    stamp: FileStamp


def read_footers(
    files: ParquetFiles, ranged: Sequence[str] = (), needed: Sequence[str] = ()
) -> list[Footer]:
    """The footers of all files of a side, in their order, read in parallel.

    Parameters
    ----------
    files : ParquetFiles
    ranged : sequence of str
        The columns whose statistics are wanted.
    needed : sequence of str
        The columns that will be read.

    Raises
    ------
    DataError
        If a file cannot be read, or Arrow has no type for a column; the file is named.
    """

    def footer(path: str) -> Footer:
        with files.reading(path), files.filesystem.open_input_file(path) as source:
            metadata, digest = open_footer(source)
            stamp = stamp_of(files.filesystem, path, digest)
            return _told(metadata, ranged, needed, files.names, stamp)

    with ThreadPoolExecutor(_THREADS) as pool:
        found = _sharing_schemas(pool.map(footer, files.paths))
    if all(lacks_name(needed, each.schema.names) for each in found):
        return _sharing_schemas(replace(each, schema=with_name(each.schema)) for each in found)
    return found


def _sharing_schemas(footers: Iterable[Footer]) -> list[Footer]:
    """With one schema for all that are like the first one: of many files they are most of the memory."""
    found: list[Footer] = []
    for footer in footers:
        alike = found and footer.schema.equals(found[0].schema, check_metadata=True)
        found.append(replace(footer, schema=found[0].schema) if alike else footer)
    return found


def _told(
    footer: pq.FileMetaData,
    ranged: Sequence[str],
    needed: Sequence[str],
    names: ColumnNames,
    stamp: FileStamp,
) -> Footer:
    old = int96_columns(footer)
    calendar = is_of_the_old_calendar(footer)
    rows = np.array([footer.row_group(i).num_rows for i in range(footer.num_row_groups)], np.int64)
    index = np.flatnonzero(rows)
    found = {name: ranges(footer, *names.in_files([name])) for name in ranged}
    size = _row_bytes(footer, index, names.in_files(needed)) * float(rows.sum())
    schema = with_instants(footer.schema.to_arrow_schema().remove_metadata(), old)
    return Footer(
        names.schema(schema), names.here(old), calendar, index, rows[index], found, size, stamp
    )


def _row_bytes(footer: pq.FileMetaData, index: np.ndarray, names: Sequence[str]) -> float:
    """Bytes of a row of some columns, by a row group from the middle of the file."""
    if not index.size:
        return 0.0
    group = footer.row_group(int(index[index.size // 2]))
    columns = [group.column(i) for i in range(group.num_columns)]
    wanted = [c for c in columns if c.path_in_schema.partition(".")[0] in names]
    return sum(c.total_uncompressed_size for c in wanted) / group.num_rows


def file_schemas(files: ParquetFiles, footers: Sequence[Footer]) -> list[tuple[str, pa.Schema]]:
    """Path and schema of each file."""
    return [(path, footer.schema) for path, footer in zip(files.paths, footers, strict=True)]


def check_alike(
    files: ParquetFiles, footers: Sequence[Footer], schema: pa.Schema, names: list[str]
) -> None:
    """Refuse files in which a needed column, which all have, is of another type than in the first.

    Raises
    ------
    SchemaError
        That names the file.
    """
    for path, found in file_schemas(files, footers):
        for name in [] if found is schema else names:
            kind, wanted = plain_type(found.field(name).type), plain_type(schema.field(name).type)
            if kind != wanted:
                raise SchemaError(
                    f"{files.side}: the column {name!r} is {kind} in {path} and {wanted} in"
                    f" {files.paths[0]}; write the files with one type"
                )
