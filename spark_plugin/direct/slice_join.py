"""One slice of the direct way: read, check, count, join. Runs wherever there is Python, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from event_model.errors import DataError
from spark_plugin.direct.files import ParquetFiles
from spark_plugin.direct.footers import RowGroup
from spark_plugin.direct.plan import DirectPlan, DirectSlice, Part, reaches
from spark_plugin.emission import Emission
from spark_plugin.sides import Side
from spark_plugin.tables import SideCounts, plain_type
from spark_plugin.wide_columns import decoded, of_one_type, one_array
from spark_plugin.worker import TablePlan

LEFT, RIGHT = 0, 1
_FEW_BEYOND = 0.9
"""Rows out of reach are left out where less than this share is in reach."""

_FEW_ROWS = 256
"""Rows read at once of what is too large to be read whole."""


@dataclass(frozen=True)
class DirectJoin:
    """A planned join of files; small enough to be sent to every task.

    Parameters
    ----------
    files : (ParquetFiles, ParquetFiles)
    tables : TablePlan
    plan : DirectPlan
    schemas : (pa.Schema, pa.Schema)
        Of the left and the right files.
    """

    files: tuple[ParquetFiles, ParquetFiles]
    tables: TablePlan
    plan: DirectPlan
    schemas: tuple[pa.Schema, pa.Schema]


@dataclass(frozen=True, eq=False)
class SliceRows:
    """What a slice has read.

    Parameters
    ----------
    left, right : Side
        Its left events, and the right ones that they can reach.
    counts : (SideCounts, SideCounts)
        Of the rows that it accounts for.
    """

    left: Side
    right: Side
    counts: tuple[SideCounts, SideCounts]


def read_slice(join: DirectJoin, number: int, threads: bool = False) -> SliceRows:
    """Read what a slice needs.

    Parameters
    ----------
    join : DirectJoin
    number : int
        Of the slice.
    threads : bool
        Whether PyArrow may use several.

    Raises
    ------
    DataError
        If a file cannot be read, or rows are invalid and that is to be an error.
    """
    slice_, tables = join.plan.slices[number], join.tables
    reader = _Reader(join, threads)
    left, left_counts = tables.read(LEFT, reader.parts(slice_.left))
    span = _span(left)
    window = tables.spec.window
    needed = [group for group in join.plan.right if reaches(group, slice_, span, window)]
    own, right_counts = _accounted(reader, slice_, needed)
    accounted = set(slice_.accounts_for)
    borrowed = [group for group in needed if group not in accounted]
    sides = [own]
    if borrowed:
        # Their invalid rows are told of, and counted, by the slice that accounts for them.
        lenient = replace(tables, invalid="drop")
        sides.append(lenient.read(RIGHT, reader.groups(RIGHT, borrowed))[0])
    right = _within_reach(_joined(sides), span, tables)
    return SliceRows(left, right, (left_counts, right_counts))


def read_groups(join: DirectJoin, side: int, groups: Sequence[RowGroup]) -> pa.Table:
    """Whole row groups of the left (0) or right (1) files."""
    return _Reader(join, threads=True).groups(side, groups)


def join_slice(join: DirectJoin, rows: SliceRows) -> Emission:
    """The output of a slice."""
    return join.tables.join(rows.left, rows.right)


def _accounted(
    reader: _Reader, slice_: DirectSlice, needed: Sequence[RowGroup]
) -> tuple[Side, SideCounts]:
    """Right rows that the slice accounts for and needs, and the counts of all it accounts for."""
    wanted = set(needed)
    mine = [group for group in slice_.accounts_for if group in wanted]
    side, counts = reader.join.tables.read(RIGHT, reader.groups(RIGHT, mine))
    others = [group for group in slice_.accounts_for if group not in wanted]
    if others:
        # Only looked at: their payload stays in the file.
        bare = replace(reader.join.tables, payload=(reader.join.tables.payload[LEFT], []))
        counts += bare.read(RIGHT, reader.groups(RIGHT, others, bare.columns(RIGHT)))[1]
    return side, counts


class _Reader:
    """Reads row groups, those of one file in one go."""

    def __init__(self, join: DirectJoin, threads: bool) -> None:
        self.join = join
        self._threads = threads

    def groups(
        self, side: int, groups: Sequence[RowGroup], columns: list[str] | None = None
    ) -> pa.Table:
        """Whole row groups of a side."""
        return self._read(side, [Part(group, 0, group.rows) for group in groups], columns)

    def parts(self, parts: Sequence[Part]) -> pa.Table:
        """Parts of left row groups."""
        return self._read(LEFT, parts, None)

    def _read(self, side: int, parts: Sequence[Part], columns: list[str] | None) -> pa.Table:
        files, schema = self.join.files[side], self.join.schemas[side]
        names = columns or self.join.tables.columns(side)
        in_order = sorted(parts, key=lambda part: (part.group.file, part.group.index))
        tables = [
            self._of_file(files, files.paths[file], list(each), names)
            for file, each in groupby(in_order, key=lambda part: part.group.file)
        ]
        if not tables:
            return _plain(self._of_file(files, files.paths[0], [], names), schema)
        return pa.concat_tables([_plain(table, schema) for table in tables])

    def _of_file(
        self, files: ParquetFiles, path: str, parts: Sequence[Part], names: list[str]
    ) -> pa.Table:
        with (
            files.reading(path),
            pq.ParquetFile(path, filesystem=files.filesystem, pre_buffer=True) as file,
        ):
            _check_unchanged(files.side, path, file.metadata, parts)
            table = _row_groups(file, [part.group.index for part in parts], names, self._threads)
        return _cut_to(table, parts)


def _row_groups(
    file: pq.ParquetFile, groups: list[int], names: list[str], threads: bool
) -> pa.Table:
    try:
        return file.read_row_groups(groups, names, use_threads=threads)
    except pa.ArrowNotImplementedError:
        # Of texts in lists and structs PyArrow reads 2 GiB at once, and no more.
        few = file.iter_batches(_FEW_ROWS, groups, names, use_threads=threads)
        return pa.Table.from_batches(list(few))


def _check_unchanged(
    side: str, path: str, metadata: pq.FileMetaData, parts: Sequence[Part]
) -> None:
    """Refuse a file that is not the one that was planned with."""
    for part in parts:
        index = part.group.index
        if (
            index >= metadata.num_row_groups
            or metadata.row_group(index).num_rows != part.group.rows
        ):
            raise DataError(f"{side}: {path} has changed since the join was planned; run it again")


def _plain(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """As planned, without what may differ from file to file: encodings, what is said of nulls."""
    names = table.column_names
    kinds = [plain_type(schema.field(name).type) for name in names]
    columns = [decoded(*each) for each in zip(table.columns, kinds, strict=True)]
    return pa.table(columns, pa.schema(list(zip(names, kinds, strict=True))))


def _cut_to(table: pa.Table, parts: Sequence[Part]) -> pa.Table:
    if all(part.stop - part.start == part.group.rows for part in parts):
        return table
    pieces, begin = [], 0
    for part in parts:
        pieces.append(table.slice(begin + part.start, part.stop - part.start))
        begin += part.group.rows
    return pa.concat_tables(pieces)


def _span(left: Side) -> tuple[int, int] | None:
    """From the earliest min_time to the latest max_time of the events that can match, ticks."""
    low, high = left.min_time, left.max_time
    if left.matchable is not None:
        low, high = low[left.matchable], high[left.matchable]
    return (int(low.min()), int(high.max())) if low.size else None


def _within_reach(right: Side, span: tuple[int, int] | None, tables: TablePlan) -> Side:
    """Without the events that no left event of the slice can reach, if they are many."""
    window = tables.spec.window
    if span is None:
        return right.rows(np.empty(0, np.int64))
    reached = (right.min_time <= span[1] + window.hi) & (right.max_time >= span[0] + window.lo)
    if np.count_nonzero(reached) >= _FEW_BEYOND * len(right):
        return right
    return right.rows(np.flatnonzero(reached))


def _joined(sides: Sequence[Side]) -> Side:
    """Events of several sides as one."""
    filled = [side for side in sides if len(side)] or list(sides[:1])
    if len(filled) == 1:
        return filled[0]
    matchable = None
    if any(side.matchable is not None for side in filled):
        matchable = np.concatenate(
            [np.ones(len(s), bool) if s.matchable is None else s.matchable for s in filled]
        )
    return Side(
        np.concatenate([side.min_time for side in filled]),
        np.concatenate([side.max_time for side in filled]),
        matchable,
        _columns(filled, lambda side: side.keys),
        _columns(filled, lambda side: side.payload),
    )


def _columns(sides: Sequence[Side], of: Callable[[Side], list[pa.Array]]) -> list[pa.Array]:
    return [one_array(of_one_type(each)) for each in zip(*map(of, sides), strict=True)]
