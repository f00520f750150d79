"""The worker before the exchange that reads row groups itself: no row passes through the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.sides import Side
from coincide.engine.events.time_columns import LACKING
from coincide.engine.files.slice_join import PlannedFiles
from coincide.engine.files.slices import Parts, Places
from coincide.engine.join.join import TablePlan
from coincide.model.errors import DataError, argument
from coincide.model.key_hashes import hashes_of, mixed
from coincide.model.sides import SIDES
from spark_plugin.tasks.blobs import told_blob, told_by
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.slice_plan import SlicePlan
from spark_plugin.tasks.wire import (
    CODED,
    KEY_HASH,
    SALT,
    TIME,
    UNMATCHED,
    WireLayout,
    on_the_wire,
)

COUNTS = "counts"
"""Column next to packs that tells in a row of its own what the rows of a task were."""
_BYTES = 64 << 20
"""What is cut at once."""
_PLACE = "file", "index", "rows", "first", "last", "slice"
"""What a pack tells that names row groups: where they are, which slices read them, and which is meant."""


@dataclass(frozen=True, eq=False)
class Staying:
    """Row groups that slices read where they lie, and the first and the last slice that does."""

    places: Places
    first: np.ndarray
    last: np.ndarray

    def packs(self) -> Iterator[tuple[int, pa.Buffer]]:
        """A pack for each slice that reads any of them, which names these."""
        readers = self.last - self.first + 1
        groups = np.repeat(np.arange(readers.size), readers)
        slices = np.arange(groups.size) - np.repeat(np.cumsum(readers) - readers, readers)
        slices = slices + self.first[groups]
        for number in np.unique(slices).tolist():
            own = groups[slices == number]
            named = self.places.take(own)
            told = named.file, named.index, named.rows, self.first[own], self.last[own]
            numbers = [each.astype(np.int64) for each in (*told, np.full(own.size, number))]
            yield number, told_blob(dict(zip(_PLACE, numbers, strict=True)))


def names_of_counts() -> tuple[str, ...]:
    """What the numbers of `COUNTS` are called: those that a side of Spark's rows observes."""
    return "rows", "unmatchable", "rounded", "too_long", *LACKING


@dataclass(frozen=True)
class FilePackTask:
    """Reads the row groups that are dealt to a partition, and packs their events by slice.

    Parameters
    ----------
    pack : PackTask
    files : PlannedFiles
    tables : TablePlan
        What makes events of rows.
    deals : tuple of Parts
        The row groups of each partition, by its number.
    layout : WireLayout
    keeps_unmatched : bool
        Whether rows that match nothing go on.
    at_once : int
        Rows that are read at once, about, or one row group.
    up_to : int or None
        The longest events that go on, ticks.
    has_salt, counts : bool
        Whether what deals rows to several slices, and counts are needed.
    stays : Staying, optional
        Row groups that are not read here: the packs of partition 0 name them to their slices.
    """

    pack: PackTask
    files: PlannedFiles
    tables: TablePlan
    deals: tuple[Parts, ...]
    layout: WireLayout
    keeps_unmatched: bool
    at_once: int
    up_to: int | None
    has_salt: bool
    counts: bool
    stays: Staying | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The packs of one partition."""
        tally = [SideCounts()]
        for batch in begin_task(batches):
            for number in batch.column(0).to_pylist():
                tables = self._tables(self.deals[number], tally)
                yield from map(self._uncounted, self.pack.batches(tables))
                if number == 0 and self.stays is not None:
                    yield from (self.pack.batch_of([pack]) for pack in self.stays.packs())
        if self.counts:
            yield self._counted(tally[0])

    @property
    def reader(self) -> FilePackTask:
        """What reads row groups that stayed."""
        return replace(self, deals=(), stays=None)

    def with_events(self, packs: Sequence[pa.Buffer]) -> tuple[list[pa.Buffer], list[pa.Table]]:
        """Packs of events, and the events of the slice in row groups that other packs name."""
        told = [told_by(pack, _PLACE) for pack in packs]
        own = [pack for pack, named in zip(packs, told, strict=True) if named is None]
        return own, [table for named in told if named is not None for table in self._events(*named)]

    def _events(self, *told: np.ndarray) -> Iterator[pa.Table]:
        """The events that one slice has in row groups, on the wire."""
        file, index, rows, first, last, slices = told
        places = Places(file, index, rows)
        order = np.lexsort((index, file, last, first))
        # Together, if the same slices read them.
        differs = np.diff(first[order]).astype(bool) | np.diff(last[order]).astype(bool)
        for run in np.split(order, np.flatnonzero(differs) + 1):
            readers = range(int(first[run[0]]), int(last[run[0]]) + 1)
            for table in self._tables(Parts.whole(places.take(run)), [SideCounts()]):
                yield self._of_slice(table, int(slices[0]), readers)

    def _of_slice(self, table: pa.Table, number: int, readers: range) -> pa.Table:
        """The events that one of the slices that read them has."""
        plan, is_left = self.pack.plan, self._side == 0
        assert isinstance(plan, SlicePlan)
        rows, slices = plan.slices_of(self.pack.places_of(table), is_left=is_left)
        if slices.size and (slices[0] < readers.start or slices[-1] >= readers.stop):
            raise DataError(
                f"{self.files.files.side}: the statistics of a file are wrong, since a row group"
                " holds events before or after them. Write the file again, or use"
                f" {argument('way', 'broadcast')}."
            )
        events = table.select(self.pack.schema.names).cast(self.pack.schema)
        return events.take(pa.array(rows[slices == number]))

    @property
    def _side(self) -> int:
        return SIDES.index(self.pack.side)

    def _tables(self, parts: Parts, tally: list[SideCounts]) -> Iterator[pa.Table]:
        """Events on the wire, some row groups after the others; what rows were is added up."""
        names = self.tables.columns(self._side)
        for run in parts.in_runs(self.at_once):
            table = self.files.read(run, names, threads=False, is_numbered=self.has_salt)
            side, counts = self.tables.read(self._side, table)
            tally[0] += counts
            kept = self._kept(side)
            if len(kept):
                yield from of_bounded_bytes(self._on_the_wire(kept))

    def _kept(self, side: Side) -> Side:
        """The events that go on."""
        goes_on = np.ones(len(side), bool)
        able = goes_on if side.matchable is None else side.matchable
        if not self.keeps_unmatched:
            goes_on = goes_on & able
        if self.up_to is not None:
            goes_on = goes_on & (~able | (side.lengths <= self.up_to))
        return side if goes_on.all() else side.rows(np.flatnonzero(goes_on))

    def _on_the_wire(self, side: Side) -> pa.Table:
        """Columns as Spark's rows have them."""
        schema = self.pack.schema
        coded = side.shapes if self._side == 0 else -1 - side.shapes
        time = side.max_time
        if side.matchable is not None:
            coded = np.where(side.matchable, coded, UNMATCHED)
            time = np.where(side.matchable, time, 0)
        columns = {TIME: pa.array(time), CODED: pa.array(coded)}
        layout, own = self.layout, self.pack.side
        slots = [layout.keys, layout.places, layout.payload(own), layout.tested(own)]
        given = [side.keys, side.places, side.payload, side.tested]
        names = self.tables.by, None, self.tables.payload, self.tables.tested
        for wires, arrays, called in zip(slots, given, names, strict=True):
            words = wires if called is None else called[self._side]
            for wire, array, word in zip(wires, arrays, words, strict=True):
                columns[wire] = on_the_wire(word, array, schema.field(wire).type)
        if self.pack.plan.needs_keys:
            columns[KEY_HASH] = pa.array(hashes_of([columns[name] for name in layout.keys]))
        if self.has_salt:
            group, row = (each.to_numpy() for each in side.identity)
            columns[SALT] = pa.array(mixed(mixed(group) + row))
        return pa.table(columns)

    def _uncounted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if not self.counts:
            return batch
        nothing = pa.nulls(batch.num_rows, pa.list_(pa.float64()))
        return batch.append_column(COUNTS, nothing)

    def _counted(self, counts: SideCounts) -> pa.RecordBatch:
        """A row without a pack that tells what rows were."""
        numbers = [counts.rows, counts.unmatchable, counts.rounded, counts.too_long]
        numbers += [counts.lacking.get(why, 0) for why in LACKING]
        empty = self._uncounted(self.pack.batch_of_none())
        columns = [pa.nulls(1, kind) for kind in empty.schema.types[:-1]]
        columns.append(pa.array([numbers], pa.list_(pa.float64())))
        return pa.RecordBatch.from_arrays(columns, schema=empty.schema)


def of_bounded_bytes(table: pa.Table) -> Iterator[pa.Table]:
    """A table in parts of about as many bytes: texts of one column have less than 2 GiB."""
    parts = -(-table.nbytes // _BYTES) or 1
    rows = max(1, -(-table.num_rows // parts))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)
