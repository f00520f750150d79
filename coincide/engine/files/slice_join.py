"""One slice of files: read, checked, counted, joined. Runs wherever there is Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.schemas import decoded, plain_type
from coincide.engine.events.sides import Side, concatenated
from coincide.engine.files.finding import FILENAME, ParquetFiles, lacks_name
from coincide.engine.files.footers import FileStamps, Footer, check_unchanged, open_footer, stamp_of
from coincide.engine.files.slices import DirectPlan, DirectSlice, Parts, Places, needed_groups
from coincide.engine.join.derived_joins import ROW_NUMBERS
from coincide.engine.join.join import Joined, TablePlan
from coincide.model.condition import Window
from coincide.model.sides import LEFT, RIGHT

_FEW_BEYOND = 0.9
"""Rows out of reach are left out where less than this share is in reach."""


@dataclass(frozen=True, eq=False)
class DirectJoin:
    """A planned join of Parquet files in time order; small enough to be sent to every task.

    `alone`, if there is such, finds right events without a match.
    """

    tables: TablePlan
    files: tuple[PlannedFiles, PlannedFiles]
    plan: DirectPlan
    alone: DirectJoin | None = None

    @property
    def count(self) -> int:
        """The number of slices."""
        return len(self.plan.slices)

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """The schemas of the left and the right files."""
        return self.files[LEFT].schema, self.files[RIGHT].schema

    def with_spec(self, **changes: Any) -> DirectJoin:
        """The same, with another spec, also of `alone`."""
        alone = None if self.alone is None else self.alone.with_spec(**changes)
        tables = replace(self.tables, spec=self.tables.spec.but(**changes))
        return replace(self, tables=tables, alone=alone)


@dataclass(frozen=True, eq=False)
class SliceRows:
    """What a slice has read."""

    left: Side
    right: Side
    counts: tuple[SideCounts, SideCounts]


def read_slice(join: DirectJoin, number: int, threads: bool = False) -> SliceRows:
    """Read what a slice needs."""
    slice_, plan, tables = join.plan.slices[number], join.plan, join.tables
    left, left_counts = _read(join, tables, LEFT, slice_.left, threads)
    able = left.up_to(tables.spec.largest_useful[LEFT])
    needed = needed_groups(plan.spans, able, tables.timing.widest)
    own, right_counts = _accounted(join, slice_, needed, threads)
    sides = [own]
    borrowed = np.setdiff1d(needed, slice_.accounts_for)
    if borrowed.size:
        # The slice that accounts for them reports and counts their invalid rows.
        lenient = replace(tables, invalid="drop")
        sides.append(_right(join, lenient, borrowed, threads)[0])
    right = within_reach(concatenated(sides), able, tables.timing.widest)
    return SliceRows(left, right, (left_counts, right_counts))


def join_slice(join: DirectJoin, rows: SliceRows) -> Joined:
    """The output of a slice."""
    return join.tables.join(rows.left, rows.right)


def counted_slice(join: DirectJoin, number: int) -> int:
    """How many pairs a slice has; no column is read but those that decide it."""
    tables = join.tables
    bare = replace(tables, payload=([], []), spec=tables.spec.moved(0))
    rows = read_slice(replace(join, tables=bare), number)
    return int(bare.spec.pairing(rows.left, rows.right).join.offsets[-1])


def _accounted(
    join: DirectJoin, slice_: DirectSlice, needed: np.ndarray, threads: bool
) -> tuple[Side, SideCounts]:
    """Right rows that the slice accounts for and needs, and the counts of all it accounts for."""
    mine = np.intersect1d(slice_.accounts_for, needed)
    side, counts = _right(join, join.tables, mine, threads)
    others = np.setdiff1d(slice_.accounts_for, needed)
    if others.size:
        # Only looked at: their payload stays in the file.
        tables = join.tables
        bare = replace(tables, payload=(tables.payload[LEFT], []), tested=(tables.tested[LEFT], []))
        counts += _right(join, bare, others, threads)[1]
    return side, counts


def _right(
    join: DirectJoin, tables: TablePlan, groups: np.ndarray, threads: bool
) -> tuple[Side, SideCounts]:
    """Whole right row groups, by their numbers."""
    return _read(join, tables, RIGHT, Parts.whole(join.plan.right.take(groups)), threads)


def _read(
    join: DirectJoin, tables: TablePlan, side: int, parts: Parts, threads: bool
) -> tuple[Side, SideCounts]:
    """Events of the left (0) or right (1) files; if need be with what tells rows apart."""
    names, spec = tables.columns(side), tables.spec
    # Rows of right events decide which of equal matches is the best, the first or the last.
    has_ties = spec.row.is_best or spec.row.is_aggregated
    is_numbered = spec.is_one_stream or (side == RIGHT and spec.ties_by_rows and has_ties)
    return tables.read(side, join.files[side].read(parts, names, threads, is_numbered))


def _span(left: Side) -> tuple[int, int] | None:
    """From the earliest min_time to the latest max_time of the events that can match, ticks."""
    low, high = left.min_time, left.max_time
    if left.matchable is not None:
        low, high = low[left.matchable], high[left.matchable]
    return (int(low.min()), int(high.max())) if low.size else None


def within_reach(right: Side, left: Side, window: Window) -> Side:
    """Right events without those that no left event of the slice can reach, if they are many."""
    span = _span(left)
    if span is None:
        return right.rows(np.empty(0, np.int64))
    reached = (right.min_time <= span[1] + window.hi) & (right.max_time >= span[0] + window.lo)
    if np.count_nonzero(reached) >= _FEW_BEYOND * len(right):
        return right
    return right.rows(np.flatnonzero(reached))


_FEW_ROWS = 256
"""Rows read at once of what is too large to be read whole."""


@dataclass(frozen=True, eq=False)
class PlannedFiles:
    """The files of one side as they were when they were planned with."""

    files: ParquetFiles
    schema: pa.Schema
    stamps: FileStamps

    @classmethod
    def of(cls, files: ParquetFiles, schema: pa.Schema, footers: Sequence[Footer]) -> PlannedFiles:
        """As the footers tell them."""
        return cls(files, schema, FileStamps.of([footer.stamp for footer in footers]))

    def read(
        self, parts: Parts, names: Sequence[str], threads: bool, is_numbered: bool = False
    ) -> pa.Table:
        """Some columns of parts of row groups, file by file."""
        order = np.lexsort((parts.places.index, parts.places.file))
        parts = parts.take(order)
        edges = np.flatnonzero(np.diff(parts.places.file)) + 1
        runs = np.split(np.arange(len(parts.places)), edges) if len(parts.places) else []
        wanted = pa.schema([(name, plain_type(self.schema.field(name).type)) for name in names])
        tables = [
            plain_table(self._of_file(parts.take(run), names, threads), wanted) for run in runs
        ]
        table = pa.concat_tables([wanted.empty_table(), *tables])
        if not is_numbered:
            return table
        for name, numbers in zip(ROW_NUMBERS, _row_numbers(parts), strict=True):
            table = table.append_column(name, pa.array(numbers))
        return table

    def batches(self, places: Places, names: Sequence[str], rows: int) -> Iterator[pa.Table]:
        """Some columns of row groups, file by file, at most `rows` rows at once."""
        wanted = pa.schema([(name, plain_type(self.schema.field(name).type)) for name in names])
        for file in np.unique(places.file).tolist():
            groups = np.sort(places.index[places.file == file]).tolist()
            with self._opened(file) as open_file:
                stored = self._stored(open_file, names)
                for batch in open_file.iter_batches(rows, groups, stored, use_threads=False):
                    yield plain_table(self._renamed(pa.table(batch), file, names), wanted)

    @contextmanager
    def _opened(self, file: int) -> Iterator[pq.ParquetFile]:
        """A file that is what it was when it was planned with, also after it was read."""
        path, filesystem = self.files.paths[file], self.files.filesystem
        planned = self.stamps[file]
        with self.files.reading(path), filesystem.open_input_file(path) as source:
            metadata, digest = open_footer(source)
            check_unchanged(self.files.side, path, planned, replace(planned, digest=digest))
            with pq.ParquetFile(source, metadata=metadata, pre_buffer=True) as open_file:
                yield open_file
            # When all is read, so that no change before can have gone by unseen.
            found = stamp_of(filesystem, path, digest)
            check_unchanged(self.files.side, path, planned, found)

    def _stored(self, file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
        """What columns that a file holds are called in it."""
        stored = self.files.names.in_files(names)
        if not lacks_name(stored, file.schema_arrow.names):
            return stored
        return [name for name in stored if name != FILENAME]

    def _renamed(self, table: pa.Table, file: int, names: Sequence[str]) -> pa.Table:
        """Columns of a file, as they are called here."""
        return self.files.names.table(table, names, self.files.paths[file])

    def _of_file(self, parts: Parts, names: Sequence[str], threads: bool) -> pa.Table:
        file = int(parts.places.file[0])
        with self._opened(file) as open_file:
            stored = self._stored(open_file, names)
            table = _row_groups(open_file, parts.places.index.tolist(), stored, threads)
        return _cut_to(self._renamed(table, file, names), parts)


def _row_numbers(parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """The row group of each row, ascending in order of files, and its number there."""
    groups = (parts.places.file.astype(np.int64) << 32) + parts.places.index
    counts = parts.stop - parts.start
    before = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) + np.repeat(parts.start - before, counts)
    return np.repeat(groups, counts), within


def _row_groups(
    file: pq.ParquetFile, groups: list[int], names: list[str], threads: bool
) -> pa.Table:
    try:
        return file.read_row_groups(groups, names, use_threads=threads)
    except pa.ArrowNotImplementedError:
        # PyArrow reads 2 GiB of texts in lists and structs at once, and no more.
        few = file.iter_batches(_FEW_ROWS, groups, names, use_threads=threads)
        return pa.Table.from_batches(list(few))


def plain_table(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Columns as planned, without what may differ from file to file: encodings, what is said of nulls."""
    pairs = zip(wanted.names, wanted.types, strict=True)
    return pa.table([decoded(table.column(name), kind) for name, kind in pairs], wanted)


def _cut_to(table: pa.Table, parts: Parts) -> pa.Table:
    if parts.are_whole:
        return table
    begins = np.cumsum(parts.places.rows) - parts.places.rows
    starts, rows = (begins + parts.start).tolist(), (parts.stop - parts.start).tolist()
    return pa.concat_tables([table.slice(*run) for run in zip(starts, rows, strict=True)])
