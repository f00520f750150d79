"""What planning needs of the footers of Parquet files: columns, bounds of row groups, and stamps."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from coincide.engine.events.ticks import float_ticks
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.files.finding import ColumnNames, ParquetFiles, lacks_name, with_name
from coincide.engine.files.old_timestamps import (
    int96_columns,
    is_of_the_old_calendar,
    with_instants,
)
from coincide.model.errors import DataError
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT

_TAIL = 1 << 16
"""Bytes to read at the end of a file, which hold most footers."""
_FOOTER_END = 8
"""The length of the footer, and PAR1."""
_UNKNOWN = -1
_ARROW = b"ARROW:schema"
"""Under which Arrow keeps its own types."""


@dataclass(frozen=True)
class FileStamp:
    """A file at some time."""

    size: int
    modified: int
    digest: int


@dataclass(frozen=True, eq=False)
class FileStamps:
    """The stamps of all files of a side: int64 arrays, shape (files,)."""

    size: np.ndarray
    modified: np.ndarray
    digest: np.ndarray

    @classmethod
    def of(cls, stamps: Sequence[FileStamp]) -> FileStamps:
        """The stamp of each file, in their order."""
        rows = [(stamp.size, stamp.modified, stamp.digest) for stamp in stamps]
        return cls(*np.array(rows, np.int64).reshape(-1, 3).T.copy())

    def __getitem__(self, file: int) -> FileStamp:
        return FileStamp(int(self.size[file]), int(self.modified[file]), int(self.digest[file]))


def open_footer(source: pa.NativeFile) -> tuple[pq.FileMetaData, int]:
    """The footer of an open file, and its digest, in one read where it is not long."""
    size = source.size()
    tail = source.read_at(min(size, _TAIL), max(0, size - _TAIL))
    length = int.from_bytes(tail[-_FOOTER_END:-4], "little") + _FOOTER_END
    if len(tail) < length <= size:
        tail = source.read_at(length, size - length)
    footer = tail[-length:]
    digest = _digest(footer, _etag(source))
    return _parsed_lately.metadata(digest, footer), digest


def stamp_of(filesystem: fs.FileSystem, path: str, digest: int) -> FileStamp:
    """The stamp of a file as it is now, the digest of its footer being known."""
    there = filesystem.get_file_info(path)
    if there.type == fs.FileType.NotFound:
        raise FileNotFoundError(path)
    size, modified = (_UNKNOWN if told is None else told for told in (there.size, there.mtime_ns))
    return FileStamp(size, modified, digest)


def check_unchanged(side: str, path: str, planned: FileStamp, found: FileStamp) -> None:
    """Refuse a file that is not the one that was planned with."""
    if planned != found:
        raise DataError(
            f"{side}: {path} has changed since planning. Run the job again. A"
            " DataFrame or view that reads it needs a new plan."
        )


class _ParsedFooters:
    """Footers parsed lately, by their digest: of many row groups that takes longer than reading them."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[int, tuple[int, pq.FileMetaData]] = OrderedDict()
        self._lock = threading.Lock()

    def metadata(self, digest: int, footer: bytes) -> pq.FileMetaData:
        """What a footer says; a file that is no Parquet is refused, in words of the library."""
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest][1]
        metadata = pq.read_metadata(pa.BufferReader(footer))
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = len(footer), metadata
                self._bytes += len(footer)
            while self._bytes > self._most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1][0]
        return metadata


_parsed_lately = _ParsedFooters(64 << 20)


def _digest(footer: bytes, etag: bytes) -> int:
    found = hashlib.blake2b(footer, digest_size=8, key=etag[:64]).digest()
    return int.from_bytes(found, "little", signed=True)


def _etag(source: pa.NativeFile) -> bytes:
    """What an object store calls this content; empty where there is no such name."""
    told = source.metadata() or {}
    names = {_text(name).lower(): value for name, value in told.items()}
    return _text(names.get("etag", "")).encode()


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


_THREADS = 16
_RUNS = 8
"""Shares of the files for each thread, so that none waits long for the last one."""


def parsed_footers(files: ParquetFiles) -> list[pq.FileMetaData]:
    """What the footers of all files say, in their order, read in parallel."""

    def parsed(path: str) -> pq.FileMetaData:
        with files.filesystem.open_input_file(path) as source:
            try:
                return open_footer(source)[0]
            except pa.ArrowInvalid as error:
                raise pa.ArrowInvalid(f"{path}: {error}") from error

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(parsed, files.paths))


@dataclass(frozen=True, eq=False)
class Footer:
    """What the footer of one file tells."""

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
    """The footers of all files of a side, in their order, read in parallel."""
    columns = _ColumnsOfFiles(files.names, ranged, needed)

    def footer(path: str) -> Footer:
        with files.reading(path), files.filesystem.open_input_file(path) as source:
            metadata, digest = open_footer(source)
            stamp = stamp_of(files.filesystem, path, digest)
            return columns.with_constants(_footer(metadata, columns.of(metadata), stamp), path)

    # Several at once where they are many: to hand over one takes a thread as long as to read it.
    step = -(-len(files.paths) // (_RUNS * _THREADS)) or 1
    runs = [files.paths[start : start + step] for start in range(0, len(files.paths), step)]
    with ThreadPoolExecutor(_THREADS) as pool:
        read = pool.map(lambda run: list(map(footer, run)), runs)
        found = _sharing_schemas(chain.from_iterable(read))
    if all(lacks_name(needed, each.schema.names) for each in found):
        return _sharing_schemas(replace(each, schema=with_name(each.schema)) for each in found)
    return found


def _sharing_schemas(footers: Iterable[Footer]) -> list[Footer]:
    """With one schema for all that are like the first one: of many files they are most of the memory."""
    found: list[Footer] = []
    for footer in footers:
        first = found[0].schema if found else footer.schema
        alike = footer.schema is first or footer.schema.equals(first, check_metadata=True)
        found.append(replace(footer, schema=first) if alike else footer)
    return found


@dataclass(frozen=True, eq=False)
class _Columns:
    """What a footer says of its columns: `ranged` and `needed` by their places in it."""

    schema: pa.Schema
    int96: frozenset[str]
    ranged: dict[str, tuple[int, Stored | None]]
    needed: list[int]


class _ColumnsOfFiles:
    """The columns of footers. Mostly all footers say the same, which is taken apart once."""

    def __init__(self, names: ColumnNames, ranged: Sequence[str], needed: Sequence[str]) -> None:
        self._names, constants = names, names.constants
        self._needed = frozenset(names.in_files(needed))
        self._ranged = [name for name in ranged if names.of_column(name) not in constants]
        self._constant = {
            name: _ranges_of_constant(constants.values.column(names.of_column(name)))
            for name in ranged
            if names.of_column(name) in constants
        }
        told = {names.of_column(name) for name in needed}.intersection(
            constants.values.column_names
        )
        size, folders = constants.values.select(list(told)).nbytes, constants.values.num_rows
        self._constant_bytes = size / max(folders, 1)
        self._last: tuple[pq.ParquetSchema, tuple[str, ...], bytes | None, _Columns] | None = None

    def of(self, footer: pq.FileMetaData) -> _Columns:
        """The columns of a footer."""
        schema, said = footer.schema, (footer.metadata or {}).get(_ARROW)
        paths = tuple(schema.column(i).path for i in range(len(schema)))
        last = self._last
        if last is not None and last[1:3] == (paths, said) and schema.equals(last[0]):
            return last[3]
        found = self._found(footer, paths)
        # Parquet compares no more than the innermost of nested columns.
        if not any("." in path for path in paths):
            self._last = schema, paths, said, found
        return found

    def _found(self, footer: pq.FileMetaData, paths: tuple[str, ...]) -> _Columns:
        names, old = self._names, int96_columns(footer)
        schema = with_instants(footer.schema.to_arrow_schema().remove_metadata(), old)
        ranged = {name: _place(footer, names.of_column(name)) for name in self._ranged}
        needed = [i for i, path in enumerate(paths) if path.partition(".")[0] in self._needed]
        return _Columns(names.schema(schema), names.here(old), ranged, needed)

    def with_constants(self, footer: Footer, path: str) -> Footer:
        """What a footer would tell if its file held the columns that its folder's name tells."""
        constants = self._names.constants
        if not len(constants):
            return footer
        row, groups = constants.rows[path], footer.rows.size
        own = {
            name: (stored, [found[row]] * groups)
            for name, (stored, found) in self._constant.items()
        }
        size = footer.bytes + self._constant_bytes * float(footer.rows.sum())
        return replace(footer, ranges=footer.ranges | own, bytes=size)


def _ranges_of_constant(values: pa.ChunkedArray) -> tuple[Stored | None, list[Range | None]]:
    """How a file would store each of some values, and the range of a row group that has no other."""
    kind = values.type
    stored = _stored_arrow(kind)
    if stored is None:
        return None, [None] * len(values)
    if stored.family == "text":
        values = values.cast(pa.binary())
    elif stored.nanoseconds is not None:
        whole = pa.int64() if kind.bit_width == 64 else pa.int32()
        values = pa.chunked_array([chunk.view(whole) for chunk in values.chunks], whole)
    found = [None if value is None else stored.range(value, value) for value in values.to_pylist()]
    return stored, [ONLY_NULLS if one is None else one for one in found]


def _stored_arrow(kind: pa.DataType) -> Stored | None:
    """How a file stores a type, as `stored_as` tells it; None as there."""
    if pa.types.is_floating(kind):
        return Stored("float")
    if pa.types.is_string(kind):
        return Stored("text")
    is_date, is_stamp = pa.types.is_date32(kind), pa.types.is_timestamp(kind)
    if not (is_date or is_stamp or pa.types.is_signed_integer(kind)):
        return None
    half = 2 ** (kind.bit_width - 1)
    unit = "d" if is_date else kind.unit if is_stamp else None
    return Stored("integer", -half, half - 1, NANOSECONDS_PER_UNIT[unit] if unit else None)


def _footer(footer: pq.FileMetaData, columns: _Columns, stamp: FileStamp) -> Footer:
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    rows = np.array([group.num_rows for group in groups], np.int64)
    index = np.flatnonzero(rows)
    filled = [groups[i] for i in index.tolist()]
    found = {name: _ranges(filled, *place) for name, place in columns.ranged.items()}
    size = _row_bytes(filled, columns.needed) * float(rows.sum())
    old = is_of_the_old_calendar(footer)
    return Footer(columns.schema, columns.int96, old, index, rows[index], found, size, stamp)


def _row_bytes(groups: Sequence[pq.RowGroupMetaData], places: Sequence[int]) -> float:
    """Bytes of a row of some columns, by a row group from the middle of the file."""
    if not groups:
        return 0.0
    group = groups[len(groups) // 2]
    return sum(group.column(i).total_uncompressed_size for i in places) / group.num_rows


def file_schemas(files: ParquetFiles, footers: Sequence[Footer]) -> list[tuple[str, pa.Schema]]:
    """Path and schema of each file."""
    return [(path, footer.schema) for path, footer in zip(files.paths, footers, strict=True)]


_BITS = {"INT32": 32, "INT64": 64}
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}

Value = Any
"""A stored value: an int, a float, or the bytes of a text, whose order is that of the texts."""

Range = tuple[Value, Value]
"""Smallest and largest stored value; None where it is not given, as with a NaN. For long texts some writers
tell a bit less and a bit more."""

ONLY_NULLS = (math.inf, -math.inf)
"""The range of a row group in which a column is null throughout."""


@dataclass(frozen=True)
class Stored:
    """How a file stores a column."""

    family: str
    least: int = 0
    most: int = 0
    nanoseconds: int | Fraction | None = None

    def range(self, low: object, high: object) -> Range:
        """The range that raw statistics tell of."""
        ends = self._value(low), self._value(high)
        # Ends the wrong way round come from a writer with another order in mind.
        wrong = ends[0] is not None and ends[1] is not None and ends[0] > ends[1]
        return (None, None) if wrong else ends

    def _value(self, raw: object) -> Value:
        if self.family == "text":
            return raw if isinstance(raw, bytes) else None
        if self.family == "float":
            return raw if isinstance(raw, float) and not math.isnan(raw) else None
        if not isinstance(raw, int):
            return None
        bits = 32 if self.most < 2**32 else 64
        value = raw % 2**bits if self.least == 0 and raw < 0 else raw
        return value if self.least <= value <= self.most else None


def stored_as(column: pq.ColumnSchema) -> Stored | None:
    """How a column is stored; None if its statistics cannot be read as numbers, times or texts."""
    return _stored_as(column.physical_type, column.logical_type.to_json())


@cache
def _stored_as(physical: str, logical: str) -> Stored | None:
    meaning = json.loads(logical)
    kind, bits = meaning["Type"], _BITS.get(physical)
    if physical in ("FLOAT", "DOUBLE") and kind == "None":
        return Stored("float")
    if physical == "BYTE_ARRAY" and kind == "String":
        return Stored("text")
    if bits is None or kind not in ("None", "Int", "Timestamp", "Date"):
        return None
    if kind == "Date":
        return Stored("integer", -(2**31), 2**31 - 1, NANOSECONDS_PER_UNIT["d"])
    if kind == "Int" and not meaning["isSigned"]:
        return Stored("integer", 0, 2 ** meaning["bitWidth"] - 1)
    half = 2 ** (meaning.get("bitWidth", bits) - 1)
    unit = _UNITS.get(meaning.get("timeUnit", ""))
    if (kind == "Timestamp") != (unit is not None):
        return None
    return Stored("integer", -half, half - 1, NANOSECONDS_PER_UNIT[unit] if unit else None)


def ranges(footer: pq.FileMetaData, name: str) -> tuple[Stored | None, list[Range | None]]:
    """How a column is stored, and its range in each row group of a file that has rows."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    return _ranges([group for group in groups if group.num_rows], *_place(footer, name))


def _ranges(
    groups: Sequence[pq.RowGroupMetaData], place: int, stored: Stored | None
) -> tuple[Stored | None, list[Range | None]]:
    if stored is None:
        return None, [None] * len(groups)
    return stored, [chunk_range(group.column(place), stored) for group in groups]


def _place(footer: pq.FileMetaData, name: str) -> tuple[int, Stored | None]:
    columns = [footer.schema.column(i) for i in range(len(footer.schema))]
    places = [i for i, column in enumerate(columns) if column.path == name]
    # A column in a struct may go by the same path as one with a dot in its name.
    return (places[0], stored_as(columns[places[0]])) if len(places) == 1 else (-1, None)


def chunk_range(chunk: pq.ColumnChunkMetaData, stored: Stored) -> Range | None:
    """The range that the statistics of one row group tell of; None: none."""
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return None
    if statistics.has_min_max:
        return stored.range(statistics.min_raw, statistics.max_raw)
    if statistics.has_null_count and statistics.null_count == chunk.num_values:
        return ONLY_NULLS
    # Writers leave the ends out where there are NaNs only, or, some of them, any.
    return (None, None) if stored.family == "float" and statistics.has_null_count else None


def range_ticks(
    stored: Stored, found: Sequence[Range | None], scale: TimeScale
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of ranges in ticks, rounded as rows are, or outwards."""
    low = [-math.inf if one is None or one[0] is None else one[0] for one in found]
    high = [math.inf if one is None or one[1] is None else one[1] for one in found]
    if stored.family == "float":
        return float_ticks(np.array(low), scale), float_ticks(np.array(high), scale)
    factor = _ticks_per_step(stored, scale)
    return _whole(low, factor, 1), _whole(high, factor, -1)


def _ticks_per_step(stored: Stored, scale: TimeScale) -> Fraction:
    """Ticks a stored step, which may be finer than what is read: Parquet has fewer units than Arrow."""
    if stored.nanoseconds is None or scale.column.nanoseconds is None:
        return scale.factor
    return scale.factor * Fraction(stored.nanoseconds, scale.column.nanoseconds)


def _whole(values: Sequence[int | float], factor: Fraction, sign: int) -> np.ndarray:
    """Integers in ticks, rounded down by sign 1 and up by sign -1."""
    up, down = factor.numerator, factor.denominator
    ticks = [
        value if isinstance(value, float) else sign * (sign * value * up // down)
        for value in values
    ]
    return np.array([max(-TIME_LIMIT, min(TIME_LIMIT, tick)) for tick in ticks], np.int64)
