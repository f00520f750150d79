"""Slices of files that are read block by block: CSV and Arrow IPC, and Parquet beside them.

Such files do not tell where the rows of a time are, so a slice is a range of times of the left side. Its
task reads the pieces, files or row groups, in which it may have rows, and keeps of each block what it
needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side, SideCounts, concatenated
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.blocks import blocks
from coincide.engine.files.row_groups import NEVER, Places, Spans
from coincide.engine.files.slice_join import (
    PlannedFiles,
    Sliced,
    SliceRows,
    plain_table,
    within_reach,
)
from coincide.engine.files.slices import Parts, needed_groups
from coincide.engine.files.source import reading
from coincide.engine.files.stamps import FileStamps, check_unchanged, plain_stamp
from coincide.engine.join.one_stream import ROW_NUMBERS
from coincide.model.sides import LEFT, RIGHT


@dataclass(frozen=True, eq=False)
class ScannedFiles:
    """The files of a side of CSV or Arrow IPC as they were when the join was planned: each is a piece."""

    given: ArrowInput
    types: pa.Schema
    schema: pa.Schema
    stamps: FileStamps

    def __len__(self) -> int:
        return len(self.given.source.found.paths)

    def blocks(
        self, piece: int, names: Sequence[str], is_numbered: bool = False
    ) -> Iterator[pa.Table]:
        """Some columns of a piece; with `ROW_NUMBERS` which say where a row is, if wished."""
        read, wanted = (
            pa.schema([schema.field(name) for name in names])
            for schema in (self.types, self.schema)
        )
        self._check_unchanged(piece)
        rows = 0
        try:
            for block in blocks(self.given, self.given.source.found.paths[piece], read):
                with reading(self.given.source):
                    table = plain_table(block, wanted)
                yield _numbered(table, piece, rows) if is_numbered else table
                rows += len(block)
        finally:
            # A file that was replaced meanwhile may look wrong, and is not.
            self._check_unchanged(piece)

    def _check_unchanged(self, piece: int) -> None:
        found, path = self.given.source.found, self.given.source.found.paths[piece]
        with found.reading(path):
            stamp = plain_stamp(found.filesystem, path)
        check_unchanged(found.side, path, self.stamps[piece], stamp)


@dataclass(frozen=True, eq=False)
class ScannedRowGroups:
    """The files of a side of Parquet beside one of CSV: each row group is a piece."""

    files: PlannedFiles
    places: Places

    @property
    def schema(self) -> pa.Schema:
        """As of `ScannedFiles`."""
        return self.files.schema

    def __len__(self) -> int:
        return len(self.places)

    def blocks(
        self, piece: int, names: Sequence[str], is_numbered: bool = False
    ) -> Iterator[pa.Table]:
        """As of `ScannedFiles`."""
        parts = Parts.whole(self.places.take(np.array([piece])))
        yield self.files.read(parts, names, False, is_numbered)


ScannedSide = ScannedFiles | ScannedRowGroups


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """What all tasks do."""

    cuts: np.ndarray
    spans: tuple[Spans, Spans]


@dataclass(frozen=True, eq=False)
class ScannedJoin(Sliced):
    """A planned join of files that are read block by block."""

    files: tuple[ScannedSide, ScannedSide]
    plan: ScanPlan

    @property
    def count(self) -> int:  # noqa: D102
        return self.plan.cuts.size + 1

    def read(self, number: int) -> SliceRows:
        """What a slice needs, and no more in memory than that and a block."""
        left, left_counts = self._left(number)
        right, right_counts = self._right(left)
        return SliceRows(left, right, (left_counts, right_counts))

    def _left(self, number: int) -> tuple[Side, SideCounts]:
        spans, cuts = self.plan.spans[LEFT], self.plan.cuts
        begin = cuts[number - 1] if number else -NEVER
        end = cuts[number] if number < cuts.size else NEVER
        # Rows that match nothing go with the slice in which the events of their piece begin.
        is_begun = np.searchsorted(cuts, spans.first, side="right") == number
        kept, counted = [], []
        pieces = np.flatnonzero(((spans.first < end) & (spans.last >= begin)) | is_begun)
        for piece, side, counts in self.events(LEFT, pieces):
            is_own = (side.min_time >= begin) & (side.min_time < end)
            if side.matchable is not None:
                is_own = np.where(side.matchable, is_own, is_begun[piece])
            kept.append(side if is_own.all() else side.rows(np.flatnonzero(is_own)))
            counted.append(counts)
        return concatenated(kept), _sum(counted)

    def _right(self, left: Side) -> tuple[Side, SideCounts]:
        spans = self.plan.spans[RIGHT]
        # Where there are more slices, planning has looked at all rows, and refused invalid ones.
        left = left.up_to(self.tables.spec.largest_useful[LEFT])
        pieces = (
            needed_groups(spans, left, self.tables.spec.window)
            if self.plan.cuts.size
            else np.arange(spans.first.size)
        )
        kept, counted = [], []
        for _, side, counts in self.events(RIGHT, pieces):
            kept.append(within_reach(side, left, self.tables))
            counted.append(counts)
        return concatenated(kept), _sum(counted)

    def events(
        self, side: int, pieces: Sequence[int] | np.ndarray
    ) -> Iterator[tuple[int, Side, SideCounts]]:
        """The events of some pieces, block by block, after a block of none; and of which piece they are."""
        files, tables = self.files[side], self.tables
        names = tables.columns(side)
        is_numbered = tables.spec.is_one_stream
        nothing = pa.schema([files.schema.field(name) for name in names]).empty_table()
        yield 0, *tables.read(side, _numbered(nothing, 0, 0) if is_numbered else nothing)
        for piece in pieces:
            for block in files.blocks(int(piece), names, is_numbered):
                yield int(piece), *tables.read(side, block)

    def of_times(self) -> ScannedJoin:
        """The same of which nothing but times is read."""
        none: tuple[list[str], list[str]] = ([], [])
        spec = self.tables.spec.but(where=None)
        return replace(
            self, tables=replace(self.tables, by=none, payload=none, tested=none, spec=spec)
        )


def _numbered(table: pa.Table, piece: int, first: int) -> pa.Table:
    numbers = np.full(len(table), piece), np.arange(first, first + len(table))
    for name, column in zip(ROW_NUMBERS, numbers, strict=True):
        table = table.append_column(name, pa.array(column))
    return table


def _sum(counts: Sequence[SideCounts]) -> SideCounts:
    return sum(counts[1:], counts[0])
