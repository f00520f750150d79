"""The workers of two streams: they pack rows by slice, and join the slices that are closed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import one_array
from coincide.engine.join.spec import AnySpec, unmatched_right
from coincide.model.sides import LEFT, RIGHT, SIDES
from spark_plugin.tasks.blobs import unpacked
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.counting import Answer
from spark_plugin.tasks.exchange import SliceTask
from spark_plugin.tasks.grid import Grid, Slices
from spark_plugin.tasks.joins import joined
from spark_plugin.tasks.packing import EVENTS, STREAM, Packing, bounded, taken
from spark_plugin.tasks.slice_plan import Places
from spark_plugin.tasks.wire import CODED, LABEL, TIME, UNMATCHED

BOUNDS = FIRST, LAST, DUE_FIRST, DUE_LAST = "first", "last", "due_first", "due_last"
IS_OWN = "is_own"
"""Columns of packs: those of `Slices`."""
IS_LATE, ROWS = "is_late", "late_rows"
"""Columns of output packs: whether a pack takes no part, and the rows of one that is late."""
IS_AHEAD, AHEAD_ROWS = "is_ahead", "ahead_rows"
"""Columns of packs: whether they are too far ahead; and of output packs, the rows of one that is."""
SEEN = "seen"
"""Column of how far a side has come, microseconds."""
SETTINGS = -(2**63)
"""Label of the row in which each chunk tells what it was packed for, and how far its side has come."""
EARLIEST = 0
"""Microseconds where nothing was seen: Spark's watermark begins there."""
_LATEST = 2**63 - 1

LATE = "late"
"""Column of the side of a late row."""


@dataclass(frozen=True)
class StreamPackTask(Packing[Slices]):
    """Packs the rows of slices that close together, and tells how far the side has come."""

    grid: Grid
    settings: bytes
    lag: int | None = None  # no packs; how far the other side is behind at most, microseconds
    ahead: int | None = field(default=None, kw_only=True)  # ticks from the median to a row at most

    def packs_of(self, table: pa.Table) -> Iterator[tuple[Slices, pa.Buffer]]:
        """As in `Packing`, after the row of settings."""
        times = table.column(TIME).to_numpy()
        can_match = table.column(CODED).to_numpy() != UNMATCHED
        is_ahead = self._are_ahead(times, can_match)
        known = times[can_match & ~is_ahead]
        latest = int(known.max()) * self.grid.nanoseconds // 1000 if known.size else EARLIEST
        seen = min(max(latest - (self.lag or 0), EARLIEST), _LATEST)
        yield Slices(SETTINGS, seen=seen), pa.py_buffer(self.settings)
        if self.lag is not None:
            return
        far = is_ahead.any()
        for group, pack in super().packs_of(table.filter(pa.array(~is_ahead)) if far else table):
            yield group._replace(seen=seen), pack  # Spark's progress tells the least of all
        if far:
            for group, pack in super().packs_of(table.filter(pa.array(is_ahead))):
                yield group._replace(seen=seen, is_ahead=True), pack

    def _are_ahead(self, times: np.ndarray, can_match: np.ndarray) -> np.ndarray:
        """Which rows of a part are too far ahead of its median, the lower one of two."""
        known = times[can_match]
        if self.ahead is None or not known.size:
            return np.zeros(times.size, bool)
        middle = (known.size - 1) // 2
        found: np.ndarray = can_match & (times > np.partition(known, middle)[middle] + self.ahead)
        return found

    def groups(self, events: pa.Table, places: Places) -> Iterator[tuple[Slices, pa.Table]]:
        """The slices that the rows are in."""
        for group, rows in self.grid.slices_of(places, is_left=self.is_left):
            yield group, taken(events, rows)

    def told(self, groups: Sequence[Slices]) -> dict[str, pa.Array]:
        """All that is known of packs."""
        labels, *bounds, are_own, seen, are_ahead = zip(*groups, strict=True)
        numbers = zip((LABEL, *BOUNDS, SEEN), (labels, *bounds, seen), strict=True)
        return {
            **{name: pa.array(values, pa.int64()) for name, values in numbers},
            IS_OWN: pa.array(are_own),
            IS_AHEAD: pa.array(are_ahead),
        }

    def origin(self, packs: int) -> dict[str, pa.Array]:
        """As in `Packing`: the number of the stream."""
        return {STREAM: pa.array(np.full(packs, self.number, np.int64))}

    @property
    def number(self) -> int:
        """Which of the streams it packs."""
        return SIDES.index(self.side)

    @property
    def is_left(self) -> bool:
        """Whether its rows meet others where they are, and do not visit these."""
        return self.side == SIDES[LEFT]

    def late_and_early(self, pack: pa.Buffer, closed: int) -> tuple[pa.Table, pa.Table]:
        """The rows of a pack that are late if slices are closed up to one, and all others."""
        rows = unpacked([pack])
        is_late = self.grid.due(self.places_of(rows).midpoints, is_left=self.is_left) <= closed
        return rows.filter(pa.array(is_late)), rows.filter(pa.array(~is_late))

    def parted(
        self, pack: pa.Buffer, number: int, until: int
    ) -> tuple[pa.Table, list[tuple[int, int, pa.Table]]]:
        """The rows of a pack that are to be met up to a slice, and all later ones: see `Grid.parted`."""
        rows = unpacked([pack])
        midpoints = self.places_of(rows).midpoints
        due, pieces = self.grid.parted(midpoints, number, until, is_left=self.is_left)
        taken_of = [(first, last, taken(rows, piece)) for first, last, piece in pieces]
        return rows.take(pa.array(due)), taken_of


_OTHER = "other_"


def other_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of columns of right rows, where those of one stream travel as left ones."""
    return tuple(f"{_OTHER}{name}" for name in names)


@dataclass(frozen=True)
class OneStreamPackTask:
    """Packs the rows of one stream as left and as right ones, so that it is read once."""

    left: StreamPackTask
    right: StreamPackTask

    @property
    def ahead(self) -> int | None:
        """Ticks from the median to a row at most."""
        return self.left.ahead

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through one partition, a bounded part after the other."""
        for table in bounded(begin_task(batches)):
            yield from self.left.batches([table])
            yield from self.right.batches([self._as_right(table)])

    def _as_right(self, table: pa.Table) -> pa.Table:
        """Rows that can have matches, as right ones."""
        table = table.filter(pc.not_equal(table.column(CODED), UNMATCHED))
        columns = dict(zip(table.column_names, table.columns, strict=True))
        for name in self.right.schema.names:
            other = f"{_OTHER}{name}"
            columns[name] = columns[other if other in columns else name]
        columns[CODED] = pc.subtract(-1, table.column(CODED))
        return pa.table(columns)


class _Pack(NamedTuple):
    """Events of a side in slices that are closed, or that came after that."""

    label: int
    is_late: bool
    stream: int
    is_own: bool
    events: pa.Buffer


@dataclass(frozen=True, kw_only=True)
class ClosedSliceTask(SliceTask):
    """Joins closed slices, those of a label in a run of packs, and makes rows of late events."""

    kinds: tuple[pa.DataType, ...]  # those of the output columns
    tells_late: bool  # the last one says which side late rows belong to
    alone: AnySpec | None = None  # the join that finds right events without a match

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns of all joins."""
        for (_, is_late), packs in itertools.groupby(self._packs(batches), lambda pack: pack[:2]):
            for columns in map(self._late, packs) if is_late else self._closed(list(packs)):
                yield columns, None

    def _packs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[_Pack]:
        """The packs that come, without late ones whose rows are only counted."""
        for batch in batches:
            told = (batch.column(name).to_pylist() for name in _Pack._fields[:-1])
            buffers = (events.as_buffer() for events in batch.column(EVENTS))
            for pack in map(_Pack._make, zip(*told, buffers, strict=True)):
                if self.tells_late or not pack.is_late:
                    yield pack

    def _closed(self, packs: list[_Pack]) -> Iterator[list[pa.Array]]:
        """The rows of some slices that follow each other."""

        def of(side: int, *, own: bool) -> list[pa.Buffer]:
            return [p.events for p in packs if p.stream == side and (p.is_own or not own)]

        # A left event is joined in its own slice, with right events that are there or visit it.
        for left, right in self.sides((of(LEFT, own=True), of(RIGHT, own=False))):
            for batch in self.joined(left, right):
                yield self._placed(batch.columns, batch.num_rows)
        if self.alone is None:
            return
        right, left = self.side(RIGHT, of(RIGHT, own=True)), self.side(LEFT, of(LEFT, own=False))
        keys, lefts = len(self.layout.keys), len(self.layout.left)
        for batch in joined(self.alone, right, left):
            own = batch.columns
            columns = unmatched_right(own, [None] * (lefts + len(own)), keys, 0)
            yield self._placed(columns, batch.num_rows)

    def _placed(self, columns: Sequence[pa.Array | None], rows: int) -> list[pa.Array]:
        """Some of the output columns, in order, and nulls in place of all others."""
        columns = [*columns, *[None] * (len(self.kinds) - len(columns))]
        return [
            pa.nulls(rows, kind) if column is None else column
            for column, kind in zip(columns, self.kinds, strict=True)
        ]

    def _late(self, pack: _Pack) -> list[pa.Array]:
        """Late events as rows."""
        side = pack.stream
        rows, name = unpacked([pack.events]), SIDES[side]
        found = [one_array(rows.column(key)) for key in self.layout.keys]
        if side == RIGHT:
            found += [None] * len(self.layout.left)
        first = len(found)
        for wire, kind in zip(self.layout.payload(name), self.kinds[first:], strict=False):
            found.append(_as_kind(one_array(rows.column(wire)), kind))
        placed = self._placed(found, rows.num_rows)
        called = self.spec.prefixes[side]
        return [*placed[:-1], pa.array([called] * rows.num_rows, self.kinds[-1])]


def _as_kind(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column of events in an output type: of lists each has the one value."""
    if not pa.types.is_list(kind):
        return column.cast(kind)
    ends = pa.array(np.arange(len(column) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(ends, column.cast(kind.value_type))
